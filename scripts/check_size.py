"""Fails when a file or a function of the product has outgrown its budget."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE = 400
MAX_FUNCTION = 60
ROOT = Path(__file__).resolve().parents[1]


def too_large(path: Path) -> Iterator[str]:
    """Every way in which a file breaks the budget, as `path:line what`."""
    text = path.read_text("utf-8")
    name = path.relative_to(ROOT)
    lines = len(text.splitlines())
    if lines > MAX_FILE:
        yield f"{name}:1 file of {lines} lines (at most {MAX_FILE})"
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                yield f"{name}:{node.lineno} {node.name} has {length} lines (at most {MAX_FUNCTION})"


def main() -> int:
    """Check the files below src; the exit code says whether all are within the budget."""
    files = sorted((ROOT / "src").rglob("*.py"))
    findings = [each for path in files for each in too_large(path)]
    print("\n".join(findings) if findings else f"sizes: {len(files)} files within the budget")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
