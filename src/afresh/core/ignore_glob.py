"""Globs of ignore files as regular expressions that cost no more than length times length.

A star may end at the first place where what follows it fits: within one name all that comes after could
fit from there, too. So each star forms an atomic group with what follows it, and no place is tried twice;
the same holds for two stars and the folders that follow them.
"""

import re

STAR, SLASH = "*", "/"  # no text of a token that is a regular expression already
DEEP, DEEP_SOME, REST = "**/", r"**\/", "**"  # any folders, at least one folder, all that follows
_SPECIAL = re.compile(r"[*?\[\\]")
END = r"\Z"


def regex_of(glob: str) -> str | None:
    """The expression for all of a path, up to its end; None if nothing matches the glob."""
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
    chunks = [""]  # of the name at hand, between its stars
    within = ""  # closes the group of two stars
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
    """One name of a path, with what ends it."""
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
    """Two stars or more between slashes cross folders; all others stay within one name.

    Git compares what stands before the first special sign by itself, so there `a**/b` begins anew.
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
    """A class of signs, which never holds the slash."""
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
    """What a class holds next, the sign that a range may begin with, and where it goes on; None: broken."""
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
