"""Links without where they lead: what a text says stays the same when what it points to moves."""

import re
from bisect import bisect_right
from itertools import accumulate

# Of `[text](https://host/path "title")` what stands between the round brackets; brackets in it come in pairs.
_TARGET = re.compile(
    r"(?<=\]\()<?https?://[^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,4}"
    r"(?: \"[^\"\n]{0,500}\")?(?=\))"
)


def without_targets(markdown: str) -> str:
    """The text with its links empty, so that it is one text wherever its pages stand."""
    return _TARGET.sub("", markdown) if "](" in markdown else markdown


class Pointing:
    """A Markdown text beside itself without targets; what is found in the short one is cut from the whole."""

    def __init__(self, markdown: str) -> None:
        self.whole = markdown
        self.short = without_targets(markdown)
        spans = [match.span() for match in _TARGET.finditer(markdown)] if self.short is not markdown else []
        self._gone = [0, *accumulate(end - start for start, end in spans)]
        self._at = [start - gone for (start, _), gone in zip(spans, self._gone, strict=False)]

    def between(self, start: int, end: int) -> str:
        """What of the whole text stands between two places of the short one; targets go with their text."""
        return self.whole[self._in_whole(start) : self._in_whole(end)]

    def _in_whole(self, place: int) -> int:
        return place + self._gone[bisect_right(self._at, place)]
