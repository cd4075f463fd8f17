"""Rules of `.gitignore` files: the same answers as `git check-ignore` gives.

| pattern     | matches                                             |
|-------------|-----------------------------------------------------|
| `name`      | a file or folder of that name at any depth          |
| `/name`     | only beside the file that holds the rule            |
| `a/b`       | that path, seen from the file that holds the rule   |
| `name/`     | only a folder                                       |
| `*` `?` `[…]` | anything but a slash                              |
| `**/` `/**` | any folders, everything inside                      |
| `!rule`     | takes back an earlier rule; the last match wins     |
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from afresh.core.ignore_glob import regex_of

MOST_BYTES = 1_048_576  # of one file
MOST_RULES = 10_000
LONGEST = 4_096
BLOCK = 100  # rules that are compiled at once, when they are first asked


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file."""

    text: str
    regex: str
    keeps: bool  # begins with an exclamation mark
    folders_only: bool
    by_name: bool  # of a file or folder at any depth, else of a whole path


_Ranked = tuple[int, Rule]  # with its place in the file


class IgnoreFile:
    """The rules of one ignore file, for paths seen from the folder it stands in."""

    def __init__(self, lines: Iterable[str], *, whole: bool = True) -> None:
        self.whole = whole  # whether all its rules are obeyed
        rules: list[_Ranked] = []
        for line in lines:
            if len(line) > LONGEST or len(rules) == MOST_RULES:
                self.whole = self.whole and parse_rule(line[:LONGEST]) is None
            elif (rule := parse_rule(line)) is not None:
                rules.append((len(rules), rule))
        self._by_name = _blocks([ranked for ranked in rules if ranked[1].by_name])
        self._by_path = _blocks([ranked for ranked in rules if not ranked[1].by_name])

    def verdict(self, path: str, is_folder: bool) -> Rule | None:
        """The rule that decides about a path, or None if none does."""
        name = _last(self._by_name, path, path.rfind("/") + 1, is_folder)
        way = _last(self._by_path, path, 0, is_folder)
        if name is None or way is None:
            found = name or way
            return found and found[1]
        return max(name, way, key=_place)[1]


def _place(ranked: _Ranked) -> int:
    return ranked[0]


class _Block:
    """Some rules as one expression; it tells which of them matches, the last first."""

    def __init__(self, rules: Sequence[_Ranked]) -> None:
        self._rules = rules
        self._for_files = [ranked for ranked in rules if not ranked[1].folders_only]

    def last(self, path: str, place: int, is_folder: bool) -> _Ranked | None:
        match = (self._of_folders if is_folder else self._of_files).match(path, place)
        if match is None or match.lastindex is None:
            return None
        return (self._rules if is_folder else self._for_files)[match.lastindex - 1]

    @cached_property
    def _of_folders(self) -> re.Pattern[str]:
        return _compiled(self._rules)

    @cached_property
    def _of_files(self) -> re.Pattern[str]:
        return _compiled(self._for_files)


def _blocks(rules: Sequence[_Ranked]) -> list[_Block]:
    last_first = rules[::-1]
    return [_Block(last_first[start : start + BLOCK]) for start in range(0, len(rules), BLOCK)]


def _compiled(rules: Sequence[_Ranked]) -> re.Pattern[str]:
    """The group that is closed behind a rule tells which one matched."""
    return re.compile("|".join(f"{rule.regex}()" for _, rule in rules) or "(?!)", re.DOTALL)


def _last(blocks: Sequence[_Block], path: str, place: int, is_folder: bool) -> _Ranked | None:
    for block in blocks:
        if (found := block.last(path, place, is_folder)) is not None:
            return found
    return None


Level = tuple[str, IgnoreFile]  # the folder it stands in, as `` or `a/b/`


def ignored_by(levels: Sequence[Level], path: str, is_folder: bool) -> str | None:
    """The rule that leaves out a path whose folders are not left out; deeper files have the last word."""
    for folder, rules in reversed(levels):
        verdict = rules.verdict(path[len(folder) :], is_folder)
        if verdict is not None:
            return None if verdict.keeps else verdict.text
    return None


def parse_ignore_file(data: bytes) -> IgnoreFile:
    """The rules in a file, of which no more than `MOST_BYTES` and a bit need be read."""
    text = data[:MOST_BYTES].decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines, whole = text.split("\n"), len(data) <= MOST_BYTES
    return IgnoreFile(lines if whole else lines[:-1], whole=whole)


def parse_rule(line: str) -> Rule | None:
    """The rule on a line; None for blank lines, comments and what can match nothing."""
    text = _trimmed(line.removesuffix("\n").removesuffix("\r").partition("\0")[0])
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    body = text[1:] if keeps else text
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    regex = regex_of(body.removeprefix("/"))
    if not body or regex is None:
        return None
    return Rule(text, regex, keeps, folders_only, by_name="/" not in body)


def _trimmed(line: str) -> str:
    """Without spaces at the end, unless a backslash keeps the last one."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and bare != line else bare
