"""Parse ignore files, and translate their globs to regular expressions that take at most quadratic time.

Each `*` and the text after it form an atomic group, into which the regex engine never backtracks: if a later part
does not match after the first occurrence of that text, it does not match after another one either. `**/` works alike.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from afresh.dataclass import dataclass

STAR, SLASH = "*", "/"  # these tokens differ from every token that is already a regular expression
DEEP, DEEP_SOME, REST = "**/", r"**\/", "**"  # any folders, at least one folder, everything that follows
_SPECIAL = re.compile(r"[*?\[\\]")
END = r"\Z"


def regex_of(glob: str) -> str | None:
    first = _SPECIAL.search(glob)
    tokens, place = [], 0
    while place < len(glob):
        token, place = _token(glob, place, first.start() if first else -1)
        if token is None:
            return None
        tokens.append(token)
    return _joined(tokens)


def _joined(tokens: list[str]) -> str:
    parts: list[str] = []
    chunks = [""]  # the texts between the stars of the current name
    within = ""  # closes the group that two stars opened
    for token in tokens:
        if token == STAR:
            chunks.append("")
            continue
        if token == SLASH:
            parts.append(_name(chunks, SLASH))
        elif token in (DEEP, DEEP_SOME):
            parts += [*chunks, within, "(?>(?:[^/]*/)", "*?" if token == DEEP else "+?"]
            within = ")"
        elif token == REST:
            parts += [*chunks, within, ".*"]
            within = ""
        else:
            chunks[-1] += token
            continue
        chunks = [""]
    return "".join([*parts, _name(chunks, END), within])


def _name(chunks: list[str], end: str) -> str:
    """Return the regex of one path segment: the texts in `chunks`, with anything between them, and then `end`."""
    first, *others = chunks
    if not others:
        return first + end
    *between, last = others
    return "".join([first, *(f"(?>[^/]*?{chunk})" for chunk in between), f"(?>[^/]*{last}{end})"])


def _token(glob: str, place: int, first: int) -> tuple[str | None, int]:
    sign = glob[place]
    if sign == "*":
        return _stars(glob, place, first)
    if sign == "?":
        return "[^/]", place + 1
    if sign == "[":
        return _class(glob, place)
    if sign == "\\":
        place += 1
        sign = glob[place : place + 1]
    return (SLASH if sign == "/" else re.escape(sign)) if sign else None, place + 1


def _stars(glob: str, place: int, first: int) -> tuple[str, int]:
    """Parse the stars at `place`; return their token (one of the constants above) and the position after them.

    `first` is the position of the first special character of the glob. Git compares the text before it separately,
    so stars at `first` count as the beginning of a path segment: in `a**/b`, they match any folders.
    """
    end = place
    while glob[end : end + 1] == "*":
        end += 1
    if end - place > 1 and (place in (0, first) or glob[place - 1] == "/"):
        if end == len(glob):
            return REST, end
        for token in (DEEP, DEEP_SOME):
            if glob.startswith(token[2:], end):
                return token, end + len(token) - 2
    return STAR, end


def _class(glob: str, place: int) -> tuple[str | None, int]:
    """Parse a class such as `[a-z]`, which never matches a slash; return its regex (None if invalid) and its end."""
    place += 1
    negated = glob[place : place + 1] in ("!", "^")
    place += negated
    members, before, start = "", "", place
    while place < len(glob) and (glob[place] != "]" or place == start):
        found = _member(glob, place, before)
        if found is None:
            return None, place
        member, before, place = found
        members += member
    if place >= len(glob):
        return None, place
    if not members:
        return "[^/]" if negated else "(?!)", place + 1
    return f"(?!/)[{'^' if negated else ''}{members}]", place + 1


def _member(glob: str, place: int, before: str) -> tuple[str, str, int] | None:
    """Parse the member of a character class at `place`; return its regex, the next `before` and the position after it.

    `before` is the character in front of the member if a range may begin with it, else "". Return None if the class is
    invalid.
    """
    sign = glob[place]
    if sign == "-" and before and glob[place + 1 : place + 2] not in ("", "]"):
        place += 2 if glob[place + 1] == "\\" else 1
        last = glob[place : place + 1]
        if not last:
            return None
        return (f"{re.escape(before)}-{re.escape(last)}" if before <= last else ""), "", place + 1
    if glob.startswith("[:", place):
        close = glob.find("]", place + 2)
        if close < 0:
            return None
        if close > place + 2 and glob[close - 1] == ":":
            named = _NAMED.get(glob[place + 2 : close - 1])
            return None if named is None else (named, "", close + 1)
    if sign == "\\":
        place += 1
        sign = glob[place : place + 1]
    return (re.escape(sign), sign, place + 1) if sign else None


_NAMED = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}

MAX_FILE_BYTES = 1_048_576
MAX_RULES = 10_000
MAX_RULE_CHARS = 4_096
RULES_PER_BLOCK = 100  # rules that are compiled to one expression, on first use


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    regex: str
    keeps: bool  # begins with an exclamation mark: what it matches is not ignored
    folders_only: bool
    by_name: bool  # True: matches the name of a file or folder at any depth; False: matches a whole path


_Ranked = tuple[int, Rule]  # the position of the rule in the file, and the rule


class IgnoreFile:
    """The rules of one ignore file, for paths relative to its folder."""

    def __init__(self, lines: Iterable[str], *, whole: bool = True) -> None:
        self.whole = whole  # False: the file is too large, and only some of its rules are used
        rules: list[_Ranked] = []
        for line in lines:
            if len(line) > MAX_RULE_CHARS or len(rules) == MAX_RULES:
                self.whole = self.whole and parse_rule(line[:MAX_RULE_CHARS]) is None
            elif (rule := parse_rule(line)) is not None:
                rules.append((len(rules), rule))
        self._blocks = {
            (by_name, for_folders): _blocks(
                [
                    (rank, rule)
                    for rank, rule in rules
                    if rule.by_name is by_name and (for_folders or not rule.folders_only)
                ]
            )
            for by_name in (True, False)
            for for_folders in (True, False)
        }

    def verdict(self, path: str, is_folder: bool) -> Rule | None:
        """Return the last rule that matches a path, which decides whether it is ignored; None if none matches."""
        name = _last(self._blocks[True, is_folder], path, path.rfind("/") + 1)
        way = _last(self._blocks[False, is_folder], path, 0)
        if name is None or way is None:
            found = name or way
            return found and found[1]
        return name[1] if name[0] > way[0] else way[1]


class _Block:
    """Up to `RULES_PER_BLOCK` rules as one regular expression; finds the last rule that matches."""

    def __init__(self, rules: Sequence[_Ranked]) -> None:
        self._rules = rules

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Join the rules; an empty group after each shows which one matched."""
        return re.compile("|".join(f"{rule.regex}()" for _, rule in self._rules), re.DOTALL)

    def last(self, path: str, place: int) -> _Ranked | None:
        match = self._pattern.match(path, place)
        return self._rules[match.lastindex - 1] if match and match.lastindex else None


def _blocks(rules: Sequence[_Ranked]) -> list[_Block]:
    last_first = rules[::-1]
    return [_Block(last_first[start : start + RULES_PER_BLOCK]) for start in range(0, len(rules), RULES_PER_BLOCK)]


def _last(blocks: Sequence[_Block], path: str, place: int) -> _Ranked | None:
    return next((found for block in blocks if (found := block.last(path, place)) is not None), None)


Level = tuple[str, IgnoreFile]  # the folder (`` or `a/b/`) and the rules of its ignore file


def ignored_by(levels: Sequence[Level], path: str, is_folder: bool) -> str | None:
    """Return the text of the rule that excludes a path, or None; deeper ignore files take precedence."""
    for folder, rules in reversed(levels):
        verdict = rules.verdict(path[len(folder) :], is_folder)
        if verdict is not None:
            return None if verdict.keeps else verdict.text
    return None


def parse_ignore_file(data: bytes) -> IgnoreFile:
    """Parse the first `MAX_FILE_BYTES` of an ignore file; if `data` is longer, leave out the incomplete last line."""
    text = data[:MAX_FILE_BYTES].decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines, whole = text.split("\n"), len(data) <= MAX_FILE_BYTES
    return IgnoreFile(lines if whole else lines[:-1], whole=whole)


def parse_rule(line: str) -> Rule | None:
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
    """Remove trailing spaces, but not one that a backslash escapes."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and bare != line else bare
