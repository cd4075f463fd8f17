"""llms.txt: a list of links in Markdown that a site offers to programs, beside or instead of a sitemap.

It is looked for below the root of the source first, then at the origin. `llms-full.txt` holds the text of all
pages in one file; it lists nothing and is read only where it is itself what was asked for (urls/scope.py).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from afresh.urls.canonical import origin_of
from afresh.urls.scope import home_of

NAME = "llms.txt"
LARGEST_BYTES = 5 * 1024 * 1024

_LINK = re.compile(r"\]\(\s{0,3}<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)")
_LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]++")
_FENCES = ("```", "~~~")


def places(root: str) -> tuple[str, ...]:
    """Where the file of a source may stand, nearest first."""
    return tuple(dict.fromkeys((f"{home_of(root)}{NAME}", f"{origin_of(root)}/{NAME}")))


def is_llms(url: str) -> bool:
    """Whether an address names such a file."""
    return url.endswith(f"/{NAME}")


def links_in(text: str, most_lines: int) -> Iterator[str]:
    """Where the links of a Markdown list lead, in order and as they are written, without those in code."""
    for line in _outside_code(lines_in(text, most_lines)):
        for link in _LINK.finditer(line):
            yield link[1]


def lines_in(text: str, most: int) -> Iterator[str]:
    """The first lines that are not empty, one at a time: a list of all takes many times their memory."""
    return (found[0] for found in islice(_LINE.finditer(text), most))


def _outside_code(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
        elif "](" in line:
            yield line
