"""Rules of ignore files: the same answers as git gives."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.strategies import examples

from afresh.sources.folder.ignore import (
    MAX_FILE_BYTES,
    MAX_RULE_CHARS,
    MAX_RULES,
    IgnoreFile,
    Level,
    ignored_by,
    parse_ignore_file,
    parse_rule,
)

CASES = [
    ("build", "build", True, True),
    ("build", "src/build", True, True),
    ("/build", "src/build", True, False),
    ("build/", "build", False, False),
    ("build/", "a/build", True, True),
    ("a/b", "a/b", False, True),
    ("a/b", "x/a/b", False, False),
    ("*.log", "deep/er/x.log", False, True),
    ("a/*.log", "a/b/x.log", False, False),
    ("**/tmp", "x/y/tmp", True, True),
    ("a/**/z", "a/z", False, True),
    ("a/**/z", "a/b/c/z", False, True),
    ("a/**", "a/b/c", False, True),
    ("a/**", "a", True, False),
    ("page?.md", "page1.md", False, True),
    ("page[0-3].md", "page2.md", False, True),
    ("page[!0-3].md", "page2.md", False, False),
    (r"\#odd", "#odd", False, True),
    (r"\!odd", "!odd", False, True),
    ("trailing   ", "trailing", False, True),
    (r"space\ ", "space ", False, True),
    ("# comment", "# comment", False, False),
    ("foo**bar", "fooxbar", False, True),
    ("[", "[", False, False),
    ("[[:digit:]]x", "7x", False, True),
    ("[b-a]", "b", False, True),
    ("[b-a]", "a", False, False),
    ("***/**", "a", False, True),
    ("***/**", "a/b/c", False, True),
    ("[[[:foo:]]", "[", False, False),
    ("a**/b", "ax/y/b", False, True),
    ("*a*b*/c*/**/d", "xaxbx/cx/y/d", False, True),
    ("secret.md", "a\nb/secret.md", False, True),
    ("*.md", "a\nb.md", False, True),
    ("one\fpage", "one\fpage", False, True),
]


@pytest.mark.parametrize(("rule", "path", "is_folder", "out"), CASES)
def test_a_rule_leaves_out_what_git_leaves_out(rule: str, path: str, is_folder: bool, out: bool) -> None:
    levels: list[Level] = [("", IgnoreFile([rule]))]
    assert (ignored_by(levels, path, is_folder) is not None) is out


def test_the_last_rule_wins_and_deeper_files_have_the_last_word() -> None:
    levels: list[Level] = [("", IgnoreFile(["*.md", "!keep.md"])), ("sub/", IgnoreFile(["keep.md", "!x.md"]))]
    assert ignored_by(levels[:1], "a.md", False) == "*.md"
    assert ignored_by(levels[:1], "keep.md", False) is None
    assert ignored_by(levels, "sub/keep.md", False) == "keep.md"
    assert ignored_by(levels, "sub/x.md", False) is None


_WORDS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "*",
        "**",
        "***",
        "a*",
        "*b",
        "a**",
        "**b",
        "?",
        "[ab]",
        "[!a]",
        "a?b",
        "\\*",
        "[b-a]",
        "[a-b]",
        "[]a]",
        "[[:alpha:]]",
        "[[:foo:]]",
        "[[[:foo:]]",
        "[a",
        "*a*b*",
        "**\\/b",
    ]
)
_RULES = st.builds(
    lambda bang, lead, words, tail: bang + lead + "/".join(words) + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(_WORDS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
PATHS = [
    "/".join(parts)
    for parts in [("a",), ("b",), ("ab",), ("axb",), ("*",), ("a", "a"), ("a", "b"), ("b", "ab"), ("a", "b", "a")]
]


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_RULES, min_size=1, max_size=4))
def test_git_itself_agrees(tmp_path_factory: pytest.TempPathFactory, rules: list[str]) -> None:
    """Asked of paths that do not exist, git takes them for files."""
    folder = _repository(tmp_path_factory)
    (folder / ".gitignore").write_text("\n".join(rules) + "\n")
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=folder,
        input="\0".join(PATHS).encode(),
        capture_output=True,
        check=False,
    )
    theirs = {path for path in asked.stdout.decode().split("\0") if path}
    assert _ours(rules) == theirs, rules


def _repository(factory: pytest.TempPathFactory) -> Path:
    folder = factory.getbasetemp() / "ignore-repository"
    if not folder.exists():
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _ours(rules: list[str]) -> set[str]:
    levels: list[Level] = [("", IgnoreFile(rules))]
    out = set()
    for path in PATHS:
        parts = path.split("/")
        folders = ["/".join(parts[:number]) for number in range(1, len(parts))]
        inside = any(ignored_by(levels, folder, True) for folder in folders)
        if inside or ignored_by(levels, path, False):
            out.add(path)
    return out


@given(st.text(max_size=30))
def test_any_line_is_a_rule_or_none(line: str) -> None:
    rule = parse_rule(line)
    if rule is not None:
        IgnoreFile([line]).verdict("a/b", False)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("*a" * 1000 + "*b", "a" * 10_000),
        ("*a*a*a*a*a*a*b", "a" * 10_000),
        ("/" + "**/*a*/" * 500 + "b", "a/" * 5_000 + "c"),
        ("**/" * 1000 + "*b", "a/" * 5_000 + "c"),
    ],
)
def test_a_rule_costs_no_more_than_its_length_times_that_of_the_path(rule: str, path: str) -> None:
    began = time.process_time()
    assert IgnoreFile([rule]).verdict(path, False) is None
    assert IgnoreFile([rule]).verdict(path[:-1] + "b", False) is not None
    assert time.process_time() - began < 5


def test_rules_beyond_what_one_file_may_hold_are_ignored_and_that_is_reported() -> None:
    many = IgnoreFile(f"name{number}" for number in range(MAX_RULES + 1))
    assert many.verdict(f"name{MAX_RULES - 1}", False) is not None
    assert many.verdict(f"name{MAX_RULES}", False) is None
    assert not many.whole
    long = IgnoreFile(["a" * (MAX_RULE_CHARS + 1), "b"])
    assert long.verdict("a" * (MAX_RULE_CHARS + 1), False) is None
    assert long.verdict("b", False) is not None
    assert not long.whole
    assert IgnoreFile(["#" + "a" * MAX_RULE_CHARS]).whole
    full = parse_ignore_file(b"a\n" + b"#" * (MAX_FILE_BYTES - 4) + b"\nabcdef")
    assert not full.whole
    assert full.verdict("a", False) is not None
    assert full.verdict("ab", False) is full.verdict("abc", False) is None  # nor half a rule
    assert parse_ignore_file(b"\xef\xbb\xbfa\r\nb").whole


def test_the_rule_that_decides_is_found_among_many() -> None:
    lines = [f"/dir{number}/*.md" if number % 2 else f"name{number}" for number in range(1000)]
    rules = IgnoreFile([*lines, "!dir501/keep.md", "name2/", "!name4"])
    expected = {"dir501/a.md": "/dir501/*.md", "x/name998": "name998", "dir501/keep.md": "!dir501/keep.md"}
    for path, text in {**expected, "x/name4": "!name4", "name2": "name2"}.items():
        found = rules.verdict(path, False)
        assert found is not None
        assert found.text == text
    folder = rules.verdict("name2", True)
    assert folder is not None
    assert folder.text == "name2/"
