"""Report, without failing, where the shape of the code deserves a look: sizes, large classes, equal names."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL_FILE, LARGE_FILE = 40, 600  # lines
MAX_METHODS = 20  # public ones of a class
MAX_FUNCTION = 60  # lines


def main() -> None:
    """Print what was found, one line for each finding, and the sums."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "src").rglob("*.py"))}
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in trees}
    for path, count in lines.items():
        if count > LARGE_FILE or (count < SMALL_FILE and path.name != "__init__.py"):
            print(f"{path.relative_to(ROOT)}: {count} lines")
    classes: dict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for finding in shapes(tree):
            print(f"{path.relative_to(ROOT)}:{finding}")
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path.relative_to(ROOT))
    for name, paths in sorted(classes.items()):
        if len(paths) > 1:
            print(f"class {name} stands in {', '.join(map(str, paths))}")
    print(f"shape: {len(trees)} files, {sum(lines.values())} lines")


def shapes(tree: ast.Module) -> Iterator[str]:
    """Yield functions that are too long and classes with too many public methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                yield f"{node.lineno} {node.name} has {length} lines"
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            public = sum(not each.name.startswith("_") for each in methods)
            if public > MAX_METHODS:
                yield f"{node.lineno} class {node.name} has {public} public methods"


if __name__ == "__main__":
    main()
