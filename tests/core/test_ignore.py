"""Rules of ignore files: the same answers as git gives."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afresh.core.ignore import IgnoreFile, Level, ignored_by, parse_rule

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


_WORDS = st.sampled_from(["a", "b", "ab", "*", "**", "a*", "*b", "?", "[ab]", "[!a]", "a?b", r"\*"])
_RULES = st.builds(
    lambda bang, lead, words, tail: bang + lead + "/".join(words) + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(_WORDS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
PATHS = [
    "/".join(parts)
    for parts in [
        ("a",),
        ("b",),
        ("ab",),
        ("axb",),
        ("*",),
        ("a", "a"),
        ("a", "b"),
        ("b", "ab"),
        ("a", "b", "a"),
    ]
]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        rule.pattern.fullmatch("a/b")
