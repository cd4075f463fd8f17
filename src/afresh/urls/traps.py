"""Detect crawler traps: URLs of which a site could generate infinitely many.

`trap_in` recognises some of them by their form alone:

| form                                    | example                                    |
|-----------------------------------------|--------------------------------------------|
| a part of the path occurs 3 times       | `/a/a/a`, `/x/a/b/a/b/a/b`                 |
| a parameter occurs 3 times              | `?tag=1&tag=2&tag=3`                       |
| more than 12 parameters                 | `?a=1&b=2&c=3…`                            |

Others look normal one by one, but there are too many of them. They have the same *pattern*: the URL with
placeholders for path components that are a number, a date, a long hexadecimal id or a UUID, and for digits in
the query. The pattern of both `/cal/2024/05` and `/cal/2031/11` is `/cal/{n}/{n}`. Names with digits, such as
`pep-0484`, `chapter3.html` and versions like `4.2`, have no placeholders, nor has the URL of the root.

The number of pages per pattern is limited, except for pages that are *vouched for*, because then they were
probably not generated on request. A page is vouched for if a page without numbers in its URL links to it
(a table of contents), or if it is below the page that links to it, unless a number follows a number as in
`/2024/` → `/2024/05/`. Sitemaps vouch for all pages that they list.
"""

import re
from collections import Counter

from afresh.urls.canonical import directory_of

ENDLESS = "looks endless: "  # the reason for refusing a trap begins with this
REPEATS = 3
MAX_PARAMS = 12
LEAST_SLASHES = 2 + REPEATS  # of a URL whose path repeats itself
_MAX_UNIT_PARTS = 5  # maximum length of a repeating sequence of path components

NUMBERED = re.compile(r"\A[^/]*+//[^/]*+/.*\d", re.DOTALL)  # the beginning of each URL that has a pattern
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_NUMBER = re.compile(r"\d+(?:[-_:,T+]\d+)*Z?")  # no dots, because versions such as 4.2 are names
_ID = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Fa-f])[0-9A-Fa-f]{8,}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_TOKEN = re.compile(r"(?=\w*\d)[A-Za-z0-9_]{16,}")  # in queries, in which names are not so long
_OPEN = frozenset({"{n}", "{id}"})


def trap_in(url: str) -> str | None:
    """Return why a canonical URL looks like a crawler trap, or None."""
    path, _, query = url.partition("?")
    if path.count("/") >= LEAST_SLASHES:
        parts = path.split("/")[3:]
        if len(parts) - len(set(parts)) >= REPEATS - 1 and (unit := _repeated(parts)):
            return f"{ENDLESS}the path repeats /{unit}"
    names = [part.partition("=")[0] for part in query.split("&") if part] if "&" in query else []
    if len(names) > MAX_PARAMS:
        return f"{ENDLESS}{len(names)} parameters"
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    return f"{ENDLESS}the parameter {name} occurs {times} times" if times >= REPEATS else None


def _repeated(parts: list[str]) -> str | None:
    for size in range(1, min(_MAX_UNIT_PARTS, len(parts) // REPEATS) + 1):
        same = 0  # number of consecutive components that are equal to the one `size` before them
        for at in range(size, len(parts)):
            same = same + 1 if parts[at] == parts[at - size] and parts[at] else 0
            if same == size * (REPEATS - 1):
                return "/".join(parts[at - size + 1 : at + 1])
    return None


def pattern_of(url: str, root: str) -> str | None:
    """Return the pattern of a URL (see above); None if it has no placeholders after what it shares with the root."""
    home = directory_of(root)
    start = len(home) if url.startswith(home) else url.find("/", 8) + 1
    if not _DIGIT.search(url, start):
        return None
    path, _, query = url[start:].partition("?")
    parts = [_part(part) for part in path.split("/")]
    open_query = _query(query)
    if open_query == query and _OPEN.isdisjoint(map(_stem, parts)):
        return None
    return url[:start] + "/".join(parts) + (f"?{open_query}" if query else "")


def _stem(part: str) -> str:
    return _SUFFIX.sub("", part)


def _part(part: str) -> str:
    stem = _stem(part)
    if _NUMBER.fullmatch(stem):
        return "{n}" + part[len(stem) :]
    return "{id}" + part[len(stem) :] if _ID.fullmatch(stem) else part


def _query(query: str) -> str:
    """Return a query with placeholders for digits; if it has any, its parameters are sorted and unique."""
    parts = [_param(part) for part in query.split("&")]
    opened = "&".join(parts)
    return opened if opened == query else "&".join(sorted(set(parts)))


def _param(part: str) -> str:
    name, mark, value = part.partition("=")
    opened = "{id}" if _ID.fullmatch(value) or _TOKEN.fullmatch(value) else _DIGITS.sub("{n}", value)
    return name + mark + opened


def is_vouched_for(url: str, found_on: str, root: str) -> bool:
    """Return whether the page `found_on`, by linking to a URL, vouches for it (see the top of this file)."""
    if pattern_of(found_on, root) is None:
        return True
    above = found_on.partition("?")[0].removesuffix("/") + "/"
    if "?" in found_on or not url.startswith(above) or url == above:
        return False
    following = _stem(url[len(above) :].partition("?")[0].partition("/")[0])
    return _part(above.rsplit("/", 2)[1]) not in _OPEN or _part(following) not in _OPEN


def display_pattern(pattern: str) -> str:
    return "/" + pattern.split("/", 3)[3]
