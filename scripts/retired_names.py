"""Fail if an identifier of src/ or tests/ uses a word that was retired: see retired_names.txt."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
JSON_KEYS = {"trouble"}  # fields of records that scripts rely on
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def main() -> int:
    """Print each retired word with its place and its replacement; return 1 if there are any."""
    lines = (ROOT / "scripts/retired_names.txt").read_text("utf-8").splitlines()
    retired = dict(line.split(": ", 1) for line in lines if not line.startswith("#"))
    folders = [Path(each) for each in sys.argv[1:]] or [ROOT / "src", ROOT / "tests"]
    count = 0
    for path in sorted(file for folder in folders for file in ([folder] if folder.is_file() else folder.rglob("*.py"))):
        for line, name in [(0, path.stem), *names(ast.parse(path.read_text("utf-8")))]:
            for word in set() if name in JSON_KEYS else {each.lower() for each in WORD.findall(name)} & retired.keys():
                print(f"{path}:{line}: {name}: instead of {word!r} say {retired[word]}")
                count += 1
    print(f"retired names: {count}")
    return 1 if count else 0


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


if __name__ == "__main__":
    sys.exit(main())
