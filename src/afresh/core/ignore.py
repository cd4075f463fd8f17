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


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file."""

    text: str
    pattern: re.Pattern[str]
    keeps: bool  # begins with an exclamation mark
    folders_only: bool


class IgnoreFile:
    """The rules of one ignore file, for paths seen from the folder it stands in."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.rules = tuple(rule for line in lines if (rule := parse_rule(line)) is not None)
        self._any = re.compile("|".join(f"(?:{rule.pattern.pattern})" for rule in self.rules) or r"(?!)")

    def verdict(self, path: str, is_folder: bool) -> Rule | None:
        """The rule that decides about a path, or None if none does."""
        if not self._any.fullmatch(path):
            return None
        for rule in reversed(self.rules):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return rule
        return None


Level = tuple[str, IgnoreFile]  # the folder it stands in, as `` or `a/b/`


def ignored_by(levels: Sequence[Level], path: str, is_folder: bool) -> str | None:
    """The rule that leaves out a path whose folders are not left out; deeper files have the last word."""
    for folder, rules in reversed(levels):
        verdict = rules.verdict(path[len(folder) :], is_folder)
        if verdict is not None:
            return None if verdict.keeps else verdict.text
    return None


def parse_rule(line: str) -> Rule | None:
    """The rule on a line; None for blank lines, comments and what can match nothing."""
    text = _trimmed(line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    body = text[1:] if keeps else text
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    pattern = _regex(body.removeprefix("/"))
    if not body or pattern is None:
        return None
    try:
        compiled = re.compile(pattern if anchored else f"(?:.*/)?{pattern}", re.DOTALL)
    except re.error:
        return None
    return Rule(text, compiled, keeps, folders_only)


def _trimmed(line: str) -> str:
    """Without spaces at the end, unless a backslash keeps the last one."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and bare != line else bare


def _regex(glob: str) -> str | None:
    """A glob as a regular expression; None if it ends within an escape or a class."""
    parts, place = [], 0
    while place < len(glob):
        piece, place = _piece(glob, place)
        if piece is None:
            return None
        parts.append(piece)
    return "".join(parts)


def _piece(glob: str, place: int) -> tuple[str | None, int]:
    sign = glob[place]
    if sign == "*":
        return _stars(glob, place)
    if sign == "?":
        return "[^/]", place + 1
    if sign == "[":
        return _class(glob, place)
    if sign == "\\":
        return (re.escape(glob[place + 1]), place + 2) if place + 1 < len(glob) else (None, place)
    return re.escape(sign), place + 1


def _stars(glob: str, place: int) -> tuple[str, int]:
    """Two stars between slashes cross folders; all others stay within one name."""
    end = place
    while end < len(glob) and glob[end] == "*":
        end += 1
    opens = place == 0 or glob[place - 1] == "/"
    if end - place == 2 and opens and end == len(glob):
        return ".+", end
    if end - place == 2 and opens and glob[end] == "/":
        return "(?:.*/)?", end + 1
    return "[^/]*", end


def _class(glob: str, place: int) -> tuple[str | None, int]:
    """A class of characters, which never holds the slash."""
    start = place + 1
    negated = glob[start : start + 1] in ("!", "^")
    start += negated
    members, end = [], start
    while end < len(glob) and (glob[end] != "]" or end == start):
        if glob[end] == "\\" and end + 1 < len(glob):
            end += 1
            members.append(re.escape(glob[end]))
        elif glob.startswith("[:", end) and (close := glob.find(":]", end)) > 0:
            members.append(_POSIX.get(glob[end + 2 : close], ""))
            end = close + 1
        else:
            members.append("-" if glob[end] == "-" else re.escape(glob[end]))
        end += 1
    if end >= len(glob):
        return None, place
    inside = "".join(members)
    return (f"(?!/)[{'^' if negated else ''}{inside}]", end + 1) if inside else (None, place)


_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
