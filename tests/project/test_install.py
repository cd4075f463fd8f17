"""What is installed: every import of ours is declared."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the packages that a module imports when it runs, also later."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (name for each in node.orelse for name in imported(ast.Module([each], [])))
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
        yield from imported(node)


def test_every_import_is_declared() -> None:
    requirements = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    names = (re.match(r"[\w.-]+", each) for each in requirements)
    declared = {canonicalize_name(name[0]) for name in names if name}
    trees = (ast.parse(path.read_bytes()) for path in (ROOT / "src").rglob("*.py"))
    found = {name for tree in trees for name in imported(tree)} - sys.stdlib_module_names - {"afresh"}
    assert len(found) > 30
    owners = packages_distributions()
    undeclared = {
        name for name in found if not {canonicalize_name(each) for each in owners.get(name, [name])} & declared
    }
    assert undeclared == set()


def test_an_import_for_types_alone_does_not_count() -> None:
    code = "if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    from c.d import e\nfrom . import g"
    assert list(imported(ast.parse(code))) == ["b", "c"]
