"""Move, merge and rename by a map file, and rewrite every mention. Needs `pip install libcst`.

    python scripts/move.py scripts/moves.txt

A line of the map is one of
    old.module new.module          move a module; merge it if the new module exists, or is named twice
    old.module:name new_name       rename a top-level name of a module (done before all moves)
    old.module:name new.module:    move a top-level definition to another module, which may be new

Files move with `git mv`; imports, dotted names in strings and paths in documents follow. A merged module has
the imports of both, and first the body that the other one imports. A line that is done already changes
nothing, so a map can be run again. Run `make format` afterwards: it sorts imports and drops unused ones.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import libcst as cst
from libcst.metadata import Assignment, GlobalScope, ImportAssignment, MetadataWrapper, ScopeProvider

ROOT = Path(__file__).resolve().parents[1]
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".sh", ".yml", ".yaml", ".sql", ".html", ""}
NOT_REWRITTEN = {"CHANGELOG.md", "scripts/moves.txt"}

Renames = Mapping[str, Mapping[str, str]]  # module -> name -> new name


def main(map_path: str) -> int:
    """Apply the map; stop at the first line that cannot be done."""
    lines = [line.split("#")[0].split() for line in Path(map_path).read_text("utf-8").splitlines()]
    pairs = [(old, new) for old, new in (line for line in lines if line)]
    renames: dict[str, dict[str, str]] = defaultdict(dict)
    definitions: dict[str, dict[str, str]] = defaultdict(dict)
    for old, new in pairs:
        if ":" in old:
            module, name = old.split(":")
            (definitions if new.endswith(":") else renames)[module][name] = new.removesuffix(":")
    try:
        apply_renames(renames)
        move_definitions(definitions)
        apply_moves({old: new for old, new in pairs if ":" not in old and is_there(old, pairs)})
    except ValueError as error:
        print(f"move: {error}", file=sys.stderr)
        return 1
    return 0


def path_of(module: str) -> Path:
    """Return the file of a module: product modules lie below src, all others below the root."""
    base = ROOT / "src" if module.split(".", maxsplit=1)[0] == "afresh" else ROOT
    package = base.joinpath(*module.split("."))
    return package / "__init__.py" if (package / "__init__.py").exists() else package.with_suffix(".py")


def is_there(module: str, pairs: Iterable[tuple[str, str]]) -> bool:
    """Return whether a module is still to be moved; a package that others moved into has its name by now."""
    path = path_of(module)
    became_package = path.name == "__init__.py" and any(new.startswith(f"{module}.") for _, new in pairs)
    return path.exists() and not became_package


def tracked_files() -> Iterator[tuple[Path, str]]:
    """Yield the text files that git knows and that may name a module."""
    for name in git("ls-files").splitlines():
        path = ROOT / name
        if name in NOT_REWRITTEN or path.suffix not in TEXT_SUFFIXES or not path.is_file():
            continue
        try:
            yield path, path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


# renaming


class Rename(cst.CSTTransformer):
    """Give names, and the imports that bind them, other names."""

    def __init__(self, nodes: Mapping[cst.CSTNode, str]) -> None:
        self.nodes = nodes

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = self.nodes.get(original_node)
        return updated_node.with_changes(value=new) if new else updated_node


def apply_renames(renames: Renames) -> None:
    homes = {path_of(module): module for module in renames}
    words = [name for names in renames.values() for name in names]
    if not words:
        return
    pattern = re.compile(rf"(?<!\w)({alternatives(words)})(?!\w)")
    for path, text in tracked_files():
        if path.suffix == ".py" and pattern.search(text):
            new = renamed(text, homes.get(path, ""), renames)
            if new != text:
                path.write_text(new, "utf-8")


def renamed(text: str, home: str, renames: Renames) -> str:
    """Return the text of a module with other names for what `renames` lists of it and of what it imports."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    scopes = {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}
    nodes: dict[cst.CSTNode, str] = {}
    for scope in scopes:
        for assignment in scope.assignments:
            if isinstance(assignment, ImportAssignment):
                nodes |= imported_names(assignment, renames)
            elif isinstance(assignment, Assignment) and isinstance(scope, GlobalScope):
                new = renames.get(home, {}).get(assignment.name)
                if new:
                    nodes |= dict.fromkeys(uses_of(assignment), new)
                    nodes[defined_name(assignment.node)] = new
    return wrapper.module.visit(Rename(nodes)).code if nodes else text


def imported_names(assignment: ImportAssignment, renames: Renames) -> dict[cst.CSTNode, str]:
    """Find the nodes to rename for one imported name: `from module import name`, or `module.name` in use."""
    node = assignment.node
    if not isinstance(node, cst.ImportFrom) or node.module is None or isinstance(node.names, cst.ImportStar):
        return {}
    module = dotted(node.module)
    nodes: dict[cst.CSTNode, str] = {}
    for alias in node.names:
        assert isinstance(alias.name, cst.Name)
        bound = (
            alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else alias.name.value
        )
        if bound != assignment.name:
            continue
        new = renames.get(module, {}).get(alias.name.value)
        if new:
            nodes[alias.name] = new
            if alias.asname is None:
                nodes |= dict.fromkeys(uses_of(assignment), new)
        for access in assignment.references:
            parent = access.node
            if isinstance(parent, cst.Attribute) and isinstance(parent.value, cst.Name) and parent.value.value == bound:
                new = renames.get(f"{module}.{alias.name.value}", {}).get(parent.attr.value)
                if new:
                    nodes[parent.attr] = new
    return nodes


def uses_of(assignment: Assignment | ImportAssignment) -> Iterator[cst.CSTNode]:
    for access in assignment.references:
        node: cst.BaseExpression = access.node
        while isinstance(node, cst.Attribute):
            node = node.value
        if isinstance(node, cst.Name) and node.value == assignment.name:
            yield node


def defined_name(node: cst.CSTNode) -> cst.CSTNode:
    return node.name if isinstance(node, cst.FunctionDef | cst.ClassDef) else node


def dotted(node: cst.BaseExpression | None) -> str:
    return f"{dotted(node.value)}.{node.attr.value}" if isinstance(node, cst.Attribute) else getattr(node, "value", "")


# moving


def apply_moves(moves: Mapping[str, str]) -> None:
    """Rewrite all mentions, then move or merge the files."""
    if not moves:
        return
    for path, text in tracked_files():
        new = rewrite_mentions(text, moves)
        if path.suffix == ".py":
            new = rewrite_module_imports(new, moves)
        if new != text:
            path.write_text(new, "utf-8")
    sources = {old: path_of(old) for old in moves}  # before a package takes the name of a module
    for old, new_name in moves.items():
        source, target = sources[old], path_of(new_name)
        if target.exists():
            body = merged(target.read_text("utf-8"), source.read_text("utf-8"), new_name)
            target.write_text(body, "utf-8")
            git("rm", "-qf", str(source))
        else:
            make_package(target.parent)
            git("mv", str(source), str(target))


def make_package(folder: Path) -> None:
    if folder in (ROOT, ROOT / "src") or (folder / "__init__.py").exists():
        return
    make_package(folder.parent)
    if ROOT / "src" in folder.parents:
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("", "utf-8")
        git("add", str(folder / "__init__.py"))
    else:
        folder.mkdir(parents=True, exist_ok=True)


def rewrite_mentions(text: str, moves: Mapping[str, str]) -> str:
    """Replace dotted names and paths of moved modules."""
    if any(old in text for old in moves):
        text = re.sub(rf"(?<![\w.])({alternatives(moves)})(?!\w)", lambda match: moves[match[1]], text)
    paths = {file_name(old): file_name(new) for old, new in moves.items()}
    if not any(old in text for old in paths):
        return text
    pattern = rf"(?<![\w/.-])((?:src/)?(?:afresh/)?)({alternatives(paths)})(?!\w)"
    return re.sub(pattern, lambda match: match[1] + paths[match[2]], text)


def file_name(module: str) -> str:
    """Return the path of a module as documents write it, from the package on."""
    return module.removeprefix("afresh.").replace(".", "/") + ".py"


def alternatives(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(set(names), key=len, reverse=True))


def rewrite_module_imports(text: str, moves: Mapping[str, str]) -> str:
    """Rewrite `from package import module`, and the uses of the module where its last name changes."""
    parents = {old.rsplit(".", 1)[0] for old in moves}
    if not re.search(rf"from ({alternatives(parents)}) import", text):
        return text
    wrapper = MetadataWrapper(cst.parse_module(text))
    names: dict[cst.CSTNode, str] = {}
    statements: dict[cst.CSTNode, list[cst.ImportFrom]] = {}
    bound = {found.name for scope in scopes_of(wrapper) for found in scope.assignments}
    for scope in scopes_of(wrapper):
        for assignment in scope.assignments:
            node = assignment.node if isinstance(assignment, ImportAssignment) else None
            if not isinstance(node, cst.ImportFrom) or node.module is None or isinstance(node.names, cst.ImportStar):
                continue
            for alias in node.names:
                new = moves.get(f"{dotted(node.module)}.{alias.name.value}")
                if not new or (alias.asname is None and alias.name.value != assignment.name):
                    continue
                leaf = new.rsplit(".", 1)[1]
                if alias.asname is None and leaf != alias.name.value and leaf not in bound:
                    names |= dict.fromkeys(uses_of(assignment), leaf)
            statements[node] = split_import(node, moves, bound)
    return wrapper.module.visit(Replace(names, statements)).code


def scopes_of(wrapper: MetadataWrapper) -> set[object]:
    return {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}


def split_import(node: cst.ImportFrom, moves: Mapping[str, str], bound: set[str]) -> list[cst.ImportFrom]:
    """Return the imports that replace `from package import module, other`."""
    if isinstance(node.names, cst.ImportStar):
        return [node]
    kept = [alias for alias in node.names if f"{dotted(node.module)}.{alias.name.value}" not in moves]
    lines = []
    if kept:
        lines.append(f"from {dotted(node.module)} import {', '.join(written(alias) for alias in kept)}")
    for alias in node.names:
        new = moves.get(f"{dotted(node.module)}.{alias.name.value}")
        if new:
            package, leaf = new.rsplit(".", 1)
            name = alias.evaluated_alias or (leaf if leaf not in bound else alias.evaluated_name)
            lines.append(f"from {package} import {leaf}" + (f" as {name}" if name != leaf else ""))
    parsed = [cst.parse_statement(line) for line in lines]
    return [each.body[0] for each in parsed]  # type: ignore[union-attr, misc]


def written(alias: cst.ImportAlias) -> str:
    return alias.evaluated_name + (f" as {alias.evaluated_alias}" if alias.evaluated_alias else "")


class Replace(Rename):
    """Rename, and put other imports in the place of some."""

    def __init__(
        self, nodes: Mapping[cst.CSTNode, str], statements: Mapping[cst.CSTNode, list[cst.ImportFrom]]
    ) -> None:
        super().__init__(nodes)
        self.statements = statements

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        new = self.statements.get(original_node.body[0])
        if not new:
            return updated_node
        first, *rest = (cst.SimpleStatementLine([each]) for each in new)
        return cst.FlattenSentinel([updated_node.with_changes(body=first.body), *rest])


# moving definitions


def move_definitions(moves: Mapping[str, Mapping[str, str]]) -> None:
    """Move top-level definitions to other modules and rewrite the imports of them."""
    for module, names in moves.items():
        if path_of(module).exists():
            take_out(module, names)
    for path, text in tracked_files():
        if path.suffix == ".py" and any(module in text for module in moves):
            new = rewrite_definition_imports(text, moves)
            if new != text:
                path.write_text(new, "utf-8")


def take_out(module: str, names: Mapping[str, str]) -> None:
    """Cut definitions out of a module into others; each side imports what it still uses of the other."""
    text = path_of(module).read_text("utf-8")
    parts = split(text, module)
    tree, lines = ast.parse(parts.body), parts.body.splitlines(keepends=True)
    stays, goes, position = "", defaultdict(str), 0
    for node in tree.body:
        piece = "".join(lines[position : node.end_lineno])
        position = node.end_lineno or 0
        targets = {names[name] for name in defined_names(node) if name in names}
        if targets:
            goes[targets.pop()] += piece
        else:
            stays += piece
    stays += "".join(lines[position:])
    if not goes:
        return
    others = "".join(f"from {new} import {name}\n" for name, new in names.items())
    path_of(module).write_text(f"{parts.docstring}\n{parts.imports}{others}\n\n{stays.strip()}\n", "utf-8")
    left = "".join(f"from {module} import {name}\n" for name in sorted(parts.names - set(names)))
    for new, body in goes.items():
        back = left + "".join(f"from {to} import {name}\n" for name, to in names.items() if to != new)
        piece = f"{parts.imports}{back}\n\n{body.strip()}\n"
        target = path_of(new)
        if target.exists():
            piece = merged(target.read_text("utf-8"), piece, new)
        else:
            make_package(target.parent)
        target.write_text(piece, "utf-8")
        git("add", str(target))


def rewrite_definition_imports(text: str, moves: Mapping[str, Mapping[str, str]]) -> str:
    lines = text.splitlines(keepends=True)
    for node in sorted(from_imports(ast.parse(text)), key=lambda node: -node.lineno):
        names = moves.get(node.module or "", {})
        moved = [alias for alias in node.names if alias.name in names]
        if not moved:
            continue
        statements = [f"from {names[alias.name]} import {ast.unparse(alias)}" for alias in moved]
        if kept := [alias for alias in node.names if alias.name not in names]:
            statements.insert(0, f"from {node.module} import {', '.join(map(ast.unparse, kept))}")
        indent = " " * node.col_offset
        lines[node.lineno - 1 : node.end_lineno] = [f"{indent}{each}\n" for each in statements]
    return "".join(lines)


def from_imports(tree: ast.Module) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


# merging


def merged(first: str, second: str, module: str) -> str:
    """Return one module with the definitions of both; `module` is their common name by now."""
    if imports_itself(first, module) and not imports_itself(second, module):
        first, second = second, first
    parts = [split(text, module) for text in (first, second)]
    names = [part.names for part in parts]
    if clash := names[0] & names[1]:
        raise ValueError(f"{module}: both bodies define {', '.join(sorted(clash))}; rename one in the map")
    docstring = next((part.docstring for part in parts if part.docstring), "")
    imports = "".join(part.imports for part in parts)
    return docstring + "\n" + imports + "\n\n" + parts[0].body.strip("\n") + "\n\n\n" + parts[1].body.strip("\n") + "\n"


def imports_itself(text: str, module: str) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.module == module for node in ast.parse(text).body)


class Parts:
    """A module as docstring, imports and body."""

    def __init__(self) -> None:
        self.docstring = self.imports = self.body = ""
        self.names: set[str] = set()


def split(text: str, module: str) -> Parts:
    """Cut a module apart; imports of `module`, which it is a part of now, are dropped."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    parts = Parts()
    position = 0
    for index, node in enumerate(tree.body):
        end = node.end_lineno or node.lineno
        piece = "".join(lines[position:end])
        position = end
        if index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.docstring = piece
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if not (isinstance(node, ast.ImportFrom) and node.module == module):
                parts.imports += piece.lstrip("\n")
            elif any(alias.asname for alias in node.names):
                raise ValueError(f"{module}: line {node.lineno} imports a part of it by another name")
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.imports += piece.lstrip("\n")
        else:
            parts.body += piece
            parts.names |= set(defined_names(node))
    parts.body += "".join(lines[position:])
    return parts


def defined_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        if isinstance(target, ast.Name):
            yield target.id


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
