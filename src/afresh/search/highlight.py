"""Finds the words of a query in a text and marks them: by their stems, whatever their case and accents."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

from afresh.search.segments import Inline, Kind, Segment, inlines_of
from afresh.search.stemming import SPACELESS
from afresh.search.stopwords import STOP_WORDS

OPEN, CLOSE = "\x02", "\x03"
UNMARKED = str.maketrans("", "", OPEN + CLOSE)
MAX_WORDS = 64

_TOKEN = re.compile(rf"[^\W_{SPACELESS}](?:[^\W_{SPACELESS}]|[\u0300-\u036f])*")
_RUN = re.compile(rf"[{SPACELESS}]+")  # a word is looked for anywhere in it
_BEYOND_ASCII = re.compile(r"[^\W\x00-\x7f]|[\u0300-\u036f]")  # letters, digits and accents
_WORD_SIGN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|。、（）「」]+")

_ENDINGS = frozenset(
    {
        "",
        "s",
        "es",
        "ed",
        "d",
        "ing",
        "er",
        "ers",
        "r",
        "rs",
        "e",
        "ies",
        "y",
        "ied",
        "ier",
        "ying",
        "ly",
        "ion",
    }
    | {"ions", "ation", "ations", "able", "ment", "ments", "en", "n"}
)
_DOUBLED = frozenset(("ing", "ed", "er", "ers"))
_LEAST_STEM = 3
_END = attrgetter("end")

Spot = tuple[int, int, str]  # where a word of the query stands, and which


class Words:
    """The words of a query, ready to be looked for; the first are the rarest."""

    def __init__(self, words: Sequence[str]) -> None:
        told = dict.fromkeys(part for word in words for part in _TOKEN.findall(word))
        runs = dict.fromkeys(run for word in words for run in _RUN.findall(word))
        self.folded = {fold(word): None for word in list(told)[:MAX_WORDS]}
        self.runs = list(runs)[:MAX_WORDS]
        self._heads = frozenset(word[:_LEAST_STEM] for word in self.folded)
        heads = "|".join(sorted(head for head in self._heads if head.isascii()))
        self._beginning = re.compile(f"(?:{heads})[a-z0-9]*" if heads else "(?!)")
        self._known: dict[str, str | None] = {}
        self.weights = _weights([*self.folded, *self.runs])

    def spots(self, text: str) -> list[Spot]:
        """Where words stand in a text, in order."""
        plain = text.isascii() or _BEYOND_ASCII.search(text) is None
        tokens = self._plain_tokens(text.lower()) if plain else _TOKEN.finditer(text)
        found: list[Spot] = []
        for token in tokens if self.folded else ():
            each = token[0]
            word = self._known[each] if each in self._known else self._meant_by(each)
            if word is not None:
                found.append((token.start(), token.end(), word))
        if not self.runs or plain:
            return found
        return sorted([*found, *(spot for run in self.runs for spot in _in_run(text, run))])

    def _plain_tokens(self, text: str) -> Iterator[re.Match[str]]:
        """The tokens in lower case of ASCII that begin like a word; hardly any other is looked at."""
        for token in self._beginning.finditer(text):
            start = token.start()
            if not start or text[start - 1] not in _WORD_SIGN:
                yield token

    def _meant_by(self, token: str) -> str | None:
        folded = fold(token)
        word = folded if folded in self.folded else None
        if word is None and any(folded[:size] in self._heads for size in range(1, _LEAST_STEM + 1)):
            word = next((each for each in self.folded if same_stem(each, folded)), None)
        self._known[token] = word
        return word


def _weights(words: Sequence[str]) -> Mapping[str, float]:
    """What each word counts: about the same, the rarer a little more, stop words next to nothing."""
    return {
        word: 0.05 if word in STOP_WORDS else 1.0 + 0.5 * (len(words) - place) / len(words)
        for place, word in enumerate(words)
    }


def _in_run(text: str, run: str) -> Iterator[Spot]:
    """The whole run, or where it stands nowhere its pairs of letters."""
    pieces = [run] if run in text or len(run) < 3 else [run[at : at + 2] for at in range(len(run) - 1)]
    for piece in pieces:
        at = text.find(piece)
        while at >= 0:
            yield at, at + len(piece), run
            at = text.find(piece, at + len(piece))


@lru_cache(maxsize=4096)
def fold(word: str) -> str:
    """The word without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", "".join(each for each in parts if not unicodedata.combining(each)))


def same_stem(one: str, other: str) -> bool:
    """Whether two words differ only in their endings: index and indexes, retry and retries, stop, stopped."""
    if one == other:
        return True
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    if shared < _LEAST_STEM or not (one.isalpha() and other.isalpha()):
        return _is_korean(one) and other.startswith(one)
    if not one.isascii():  # endings of other languages are not known, only how long they mostly are
        return shared > _LEAST_STEM and max(len(one), len(other)) - shared <= _LEAST_STEM
    return _is_ending(one[:shared], one[shared:]) and _is_ending(one[:shared], other[shared:])


def _is_korean(word: str) -> bool:
    return len(word) > 1 and "\uac00" <= word[0] <= "\ud7a3"


def _is_ending(stem: str, rest: str) -> bool:
    return rest in _ENDINGS or (rest[:1] == stem[-1] and rest[1:] in _DOUBLED)


def spots_in(text: str, segment: Segment, found: Sequence[Spot]) -> list[Spot]:
    """Those of the words found in a segment that may be marked: none in an address, a tag or the line that
    opens code."""
    match segment.kind:
        case Kind.OPENING | Kind.CLOSING | Kind.BLANK:
            return []
        case Kind.CODE:
            closed = [each.span() for each in _URL.finditer(text, segment.start, segment.end)]
            stretches = _between(segment.start, segment.end, closed)
        case _:
            inlines = segment.inlines
            if inlines is None:
                inlines = inlines_of(text, segment.start, segment.end)
            return list(_spoken(text, inlines, found)) if inlines else list(found)
    return [spot for spot in found if any(low <= spot[0] and spot[1] <= high for low, high in stretches)]


def _spoken(text: str, inlines: Sequence[Inline], found: Sequence[Spot]) -> Iterator[Spot]:
    """Those of the words found in Markdown with some inlines that a reader sees as words."""
    for spot in found:
        place = bisect_right(inlines, spot[0], key=_END)
        inline = inlines[place] if place < len(inlines) else None
        if inline is None or spot[1] <= inline.start:
            yield spot
        elif inline.words is not None and inline.words[0] <= spot[0] and spot[1] <= inline.words[1]:
            yield from _spoken(text, inlines_of(text, *inline.words), [spot])


def _between(start: int, end: int, taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    borders = [start, *(place for span in taken for place in span), end]
    return [(low, high) for low, high in zip(borders[::2], borders[1::2], strict=True) if low < high]


def marked(text: str, start: int, end: int, spots: Iterable[Spot]) -> str:
    """The stretch of text with its spots between U+0002 and U+0003; those that a `_` joins are one."""
    parts, at = [], start
    for low, high in _merged(text, spots):
        if low >= at and high <= end:
            parts += [text[at:low], OPEN, text[low:high], CLOSE]
            at = high
    return "".join([*parts, text[at:end]])


def _merged(text: str, spots: Iterable[Spot]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high, _ in sorted(spots):
        if merged and (low <= merged[-1][1] or text[merged[-1][1] : low] == "_"):
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
