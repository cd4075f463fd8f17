"""Match globs with the syntax of `fnmatch` (`*`, `?`, `[…]`) without backtracking.

All positions in the text that a glob may have reached are stored as the bits of one number, and each token of
the glob moves all of them in one step. A regular expression would have to try every position after a star.
"""

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from afresh.dataclass import dataclass

MAX_GLOB_CHARACTERS = 200
MAX_GLOBS = 100  # per setting

_SPECIAL = re.compile(r"[*?\[]")
_MAX_NEEDLE_CHARACTERS = 16
_ASCII = tuple(map(chr, range(128)))


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """A character class, such as `[a-z]`."""

    pattern: re.Pattern[str]  # matches one character
    ascii: frozenset[str]

    def takes(self, character: str) -> bool:
        if character.isascii():
            return character in self.ascii
        return self.pattern.match(character) is not None


@dataclass(frozen=True, slots=True)
class Glob:
    text: str
    signs: tuple[str | _Class, ...]  # its tokens: `*`, `?`, a class, or any other character
    head: str  # text with which a match must begin
    tail: str  # text with which a match must end
    needle: str  # text that a match must contain; short, as a search for a long text can take quadratic time


def parse_glob(text: str) -> Glob:
    """Parse a pattern; every text is valid."""
    first = _SPECIAL.search(text)
    if first is None:
        return Glob(text, tuple(text), text, text, "")
    signs = tuple(_signs(text))
    tail = text[max(map(text.rfind, "*?[]")) + 1 :]
    plain = "".join(sign if isinstance(sign, str) else "*" for sign in signs)
    needle = max(plain.replace("?", "*").split("*"), key=len)
    return Glob(text, signs, text[: first.start()], tail, needle[:_MAX_NEEDLE_CHARACTERS])


def _signs(text: str) -> Iterator[str | _Class]:
    at = 0
    while at < len(text):
        end = _class_end(text, at) if text[at] == "[" else 0
        if end:
            yield _class_of(text[at:end])
        else:
            yield text[at]
        at = end or at + 1


@lru_cache(maxsize=1024)
def _class_of(text: str) -> _Class:
    pattern = re.compile(translate(text))
    return _Class(pattern, frozenset(filter(pattern.match, _ASCII)))


def _class_end(text: str, at: int) -> int:
    """Return the end of the character class that begins at `at`; 0 if it is not closed and therefore literal."""
    at += 1
    at += text.startswith("!", at)
    return text.find("]", at + text.startswith("]", at)) + 1


class GlobSubject:
    """A text: a glob matches it from any position in `starts` to the end, or from the last of them to `inner_end`.

    For a URL, these parts are the whole URL, its path and query, and its path alone.
    """

    def __init__(self, text: str, starts: tuple[int, ...], inner_end: int = -1) -> None:
        self._text = text
        self._starts = starts
        self._inner_end = inner_end if inner_end >= 0 else len(text)
        self._places: dict[str, int] | None = None  # character → its positions, as bits
        self._class_places: dict[_Class, int] = {}

    def matches(self, glob: Glob) -> bool:
        text, inner_end = self._text, self._inner_end
        if glob.needle not in text or not any(text.startswith(glob.head, start) for start in self._starts):
            return False
        if not text.endswith(glob.tail) and not text.endswith(glob.tail, 0, inner_end):
            return False
        reached = self._reached(glob, sum(1 << start for start in self._starts))
        if reached >> len(text):
            return True
        if not reached >> inner_end & 1:
            return False
        return bool(self._reached(glob, 1 << self._starts[-1]) >> inner_end & 1)

    def _reached(self, glob: Glob, reached: int) -> int:
        """Return (as bits) the positions where a match of a glob may end if it begins at the positions `reached`."""
        places, everywhere = self._read_places(), (1 << (len(self._text) + 1)) - 1
        for sign in glob.signs:
            if sign == "*":
                reached = everywhere & -(reached & -reached)  # all positions from the first one on
            elif sign == "?":
                reached = (reached << 1) & everywhere
            else:
                found = places.get(sign, 0) if isinstance(sign, str) else self._read_class(sign, places)
                reached = (reached & found) << 1
            if not reached:
                break
        return reached

    def _read_places(self) -> dict[str, int]:
        if self._places is None:
            self._places = {}
            for place, character in enumerate(self._text):
                self._places[character] = self._places.get(character, 0) | 1 << place
        return self._places

    def _read_class(self, sign: _Class, places: dict[str, int]) -> int:
        found = self._class_places.get(sign)
        if found is None:
            found = 0
            for character, where in places.items():
                if sign.takes(character):
                    found |= where
            self._class_places[sign] = found
        return found
