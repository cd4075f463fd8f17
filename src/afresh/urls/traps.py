"""Detect crawler traps that look normal one by one: URLs of which a site generates far too many.

`urls/scope.py` refuses those that their form gives away. The others have the same *pattern*: the URL with
placeholders for path components that are a number, a date, a long hexadecimal id or a UUID, and for digits in
the query. The pattern of both `/cal/2024/05` and `/cal/2031/11` is `/cal/{n}/{n}`. Names with digits, such as
`pep-0484`, `chapter3.html` and versions like `4.2`, have no placeholders, nor has the URL of the root.

The number of pages per pattern is limited, except for pages that are *vouched for*, because then they were
probably not generated on request. A page is vouched for if a page without numbers in its URL links to it
(a table of contents), or if it is below the page that links to it, unless a number follows a number as in
`/2024/` → `/2024/05/`. Sitemaps vouch for all pages that they list.
"""

import re

from afresh.urls.canonical import directory_of

NUMBERED = re.compile(r"\A[^/]*+//[^/]*+/.*\d", re.DOTALL)  # the beginning of each URL that has a pattern
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_NUMBER = re.compile(r"\d+(?:[-_:,T+]\d+)*Z?")  # no dots, because versions such as 4.2 are names
_ID = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Fa-f])[0-9A-Fa-f]{8,}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_TOKEN = re.compile(r"(?=\w*\d)[A-Za-z0-9_]{16,}")  # in queries, in which names are not so long
_OPEN = frozenset({"{n}", "{id}"})


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
