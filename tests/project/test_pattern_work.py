"""S7: no pattern that sees outside text does more than twice the work for twice the text.

The work is counted, not timed: `backtracking.py` matches as `re` does and counts its steps, on texts that are
made from each pattern so that its repeats run and then fail.
"""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.project.backtracking import MOST_GROWTH, growth

import afresh

ROOT = Path(afresh.__file__).parent
AT_START = frozenset({"match", "fullmatch"})
METHODS = AT_START | {"search", "sub", "subn", "split", "finditer", "findall"}

ELSEWHERE = ("testing/",)

# Patterns that may do more → what bounds the text they see.
_PASSAGE = "one line of a passage, which has a few thousand characters at most"
SHORT = {
    "config/forms.py:_PASSWORD": "a setting of the operator",
    "store/sqlite.py:_LOCK": "a statement of our own",
    "models/local.py:_MARKS": "its repeats end after 2,000 characters, and it sees one passage",
    "cli/hits.py:_HEADING": _PASSAGE,
    "cli/hits.py:_ROW": _PASSAGE,
    "cli/hits.py:_RULE": _PASSAGE,
    "extract/markup/asciidoc.py:_INLINE": "its repeats end after 1,000 characters, or at their own mark",
    "extract/decode.py:_TAG": "the first 16 KB of a page (PRESCAN_BYTES)",
    "extract/html/head.py:_SEPARATOR": "a title on one line, in which no two blanks follow each other",
    "extract/markdown.py:_MARKS": "a title or the text of a link: 20 × MAX_TITLE_CHARS, MAX_LINK_TEXT_CHARS",
    "extract/html/markdown.py:_TERM": "what our serialiser wrote, which closes every <dt>",
    "extract/office/xlsx.py:_NO_CODE": "one format of a cell, 1,000 characters (MAX_FORMAT_CHARACTERS)",
}


class Use(NamedTuple):
    """A pattern and how it is used."""

    name: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


@cache
def _uses() -> tuple[Use, ...]:
    files = (file for file in sorted(ROOT.rglob("*.py")) if not _path(file).startswith(ELSEWHERE))
    return tuple(use for file in files for use in _uses_in(file))


def _path(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _uses_in(file: Path) -> Iterator[Use]:
    source = file.read_text()
    if "import re\n" not in source:
        return
    tree = ast.parse(source)
    used: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
            used[node.value.id].add(node.attr)
    module = importlib.import_module(".".join(("afresh", *file.relative_to(ROOT).with_suffix("").parts)))
    for name, held in vars(module).items():
        for pattern in _patterns(held):
            yield Use(f"{_path(file)}:{name}", pattern, frozenset(used[name]))
    for node in ast.walk(tree):
        if _is_inline(node) and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
            pattern, name = re.compile(node.args[0].value), node.func.attr  # type: ignore[attr-defined]
            yield Use(f"{_path(file)}:{node.args[0].value!r}", pattern, frozenset({name} & METHODS))


def _patterns(held: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(held, re.Pattern):
        yield held
    elif isinstance(held, tuple | list):
        for each in held:
            yield from _patterns(each)
    elif isinstance(held, dict):
        yield from _patterns([*held, *held.values()])
    elif is_dataclass(held) and not isinstance(held, type):
        yield from _patterns([getattr(held, each.name) for each in fields(held)])


def _is_inline(node: ast.AST) -> bool:
    """A call like `re.sub(…)`."""
    called = node.func if isinstance(node, ast.Call) and node.args else None
    is_re = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re"
    return is_re and called.attr in METHODS  # type: ignore[union-attr]


def _growth(use: Use) -> tuple[float, str]:
    anchored = bool(use.methods) and use.methods <= AT_START
    return growth(use.pattern, anchored=anchored, whole=use.methods == {"fullmatch"})


@pytest.mark.slow
def test_S7_F121_twice_the_text_is_at_most_twice_the_work_for_every_pattern() -> None:
    uses = {use[1:]: use for use in _uses() if use.name not in SHORT}.values()
    found = [(use.name, use.pattern.pattern, *_growth(use)) for use in uses]
    steep = [each for each in found if each[2] > MOST_GROWTH]
    assert not steep, "\n".join(map(str, steep))


def test_S7_the_counter_knows_steep_patterns_from_flat_ones() -> None:
    steep = ["a+b", "(a+)+b", "<[^>]*>", r"\s*x", "(?:a|aa)*b", r"(\bpg://)(?:[^@]*:(?:(?!://).)*|[^ ]*)@"]
    flat = ["a", "(?<!a)a++b", "<[^<>]*>", r"(?<!\s)\s*x", "(?>a+)(?<=a)", "^a*b", r"\bpg://"]
    grown = {each: growth(re.compile(each), anchored=False, whole=False)[0] for each in steep + flat}
    assert [each for each, times in grown.items() if times > MOST_GROWTH] == steep
    assert len(_uses()) > 150
