"""A readable passage around what was asked for, and the longer context of a hit.

A passage is a run of segments (segments.py) of one chunk: the one that holds most of the query's words, grown
to both sides as far as there is room. It is cut at sentences and lines; `…` tells where a line was cut, and a
block of code is closed where it was cut. A chunk that is short is shown with the lines around it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from afresh.search.highlight import CLOSE, OPEN, UNMARKED, Spot, Words, marked, spots_in
from afresh.search.segments import LONGEST, Kind, Segment, segments_of
from afresh.text.normalize import headings_in

WIDTH = 400
CONTEXT_CHARS = 4_000
LONGEST_READ = 20_000  # a chunk of links may be far longer than it reads
_SHORT = 0.5  # of the width: what is shorter is shown with its neighbours
_HEAD_ROWS = 2  # names and rule
_LONG_BLOCKS = {Kind.CODE: (Kind.CODE, Kind.OPENING), Kind.ROW: (Kind.ROW,)}
_IDLE_AT_START = (Kind.BLANK, Kind.CLOSING)
_IDLE_AT_END = (Kind.BLANK, Kind.OPENING, Kind.HEADING)


class Section(Protocol):
    """A chunk as it is read: its text and the headings above it."""

    @property
    def content(self) -> str: ...

    @property
    def path(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with its segments and where the words of the query stand in each."""

    text: str
    segments: Sequence[Segment]
    spots: Sequence[Sequence[Spot]]

    def size(self, low: int, high: int) -> int:
        return self.segments[high - 1].end - self.segments[low].start if high > low else 0


def passage(
    content: str, words: Sequence[str] | Words, *, before: str = "", after: str = "", width: int = WIDTH
) -> str:
    """The part of a chunk that shows best what was asked for; matches stand between U+0002 and U+0003.

    `words` are the words of the query, the rarest first; `before` and `after` are the chunks around it.
    """
    asked = words if isinstance(words, Words) else Words(words)
    text = _read_around(content, asked, width)
    if not text.segments:
        return ""
    shown = _shown(text, *_grown(text, *_best(text, asked, width), width))
    if len(text.text) > width * _SHORT:
        return shown
    following = _start_of(after, asked, width - len(text.text))
    leading = _end_of(before, asked, width - len(text.text) - len(following))
    return "\n\n".join(part for part in (leading, shown, following) if part)


def context(chunks: Sequence[Section], hit: int, max_chars: int = CONTEXT_CHARS) -> str:
    """The hit with the headings above it and as many of its neighbours as there is room for."""
    if len(chunks[hit].content) > max_chars:
        return passage(chunks[hit].content, (), width=max_chars)
    low, high = _around(chunks, hit, max_chars)
    parts, above = _trail(chunks[low]), ""
    for chunk in chunks[low:high]:
        parts.append(_below(chunk.content, above))
        above = ([*chunk.path, *headings_in(chunk.content)] or [""])[-1]
    return "\n\n".join(part for part in parts if part)


# ---- which part ----------------------------------------------------------------------------------


def _read(content: str, words: Words, width: int) -> _Text:
    text = _unmarked(content)
    return _placed(text, words.spots(text), segments_of(text, _longest(width)))


def _read_around(content: str, words: Words, width: int) -> _Text:
    """A text, read only where most of the words stand close together: that is where a passage comes from."""
    text = _unmarked(content)
    found = words.spots(text)
    if len(text) <= 2 * width:
        return _placed(text, found, segments_of(text, _longest(width)))
    middle = _densest(found, words, width)
    if len(text) > LONGEST_READ:
        low = text.rfind("\n", 0, max(0, middle - LONGEST_READ // 2)) + 1
        text, middle = text[low : low + LONGEST_READ], middle - low
        found = words.spots(text)
    low = min(middle - width // 2, len(text) - width)
    near = _placed(text, found, segments_of(text, _longest(width), (low, middle + width + width // 2)))
    if any(near.spots) or not found:
        return near
    return _placed(text, found, segments_of(text, _longest(width)))  # there, words stood in addresses only


def _densest(found: Sequence[Spot], words: Words, width: int) -> int:
    """Where a passage would begin that holds most of the words."""
    weights = words.weights
    best, place, last = 0.0, 0, 0
    held: dict[str, int] = {}
    for first, (begin, _, leaving) in enumerate(found):
        known = last
        while last < len(found) and found[last][0] < begin + width:
            word = found[last][2]
            held[word] = held.get(word, 0) + 1
            last += 1
        if last > known and (score := _score(held, last - first, weights)) > best:
            best, place = score, begin
        held[leaving] -= 1
        if not held[leaving]:
            del held[leaving]
    return place


def _score(held: Iterable[str], spots: int, weights: Mapping[str, float]) -> float:
    """What a passage is worth that holds some words in so many spots."""
    return sum(map(weights.__getitem__, held)) + 0.02 * min(spots, 10)


def _placed(text: str, found: Sequence[Spot], segments: Sequence[Segment]) -> _Text:
    starts = [start for start, _, _ in found]
    spots = []
    for each in segments:
        inside = found[bisect_left(starts, each.start) : bisect_left(starts, each.end)]
        spots.append(spots_in(text, each, inside) if inside else [])
    return _Text(text, segments, spots)


def _unmarked(content: str) -> str:
    return (content.translate(UNMARKED) if OPEN in content or CLOSE in content else content).strip("\n")


def _longest(width: int) -> int:
    return max(40, min(LONGEST, width // 2))


def _best(text: _Text, words: Words, width: int) -> tuple[int, int]:
    """The run of segments that holds most, without what stands around its matches; else the beginning."""
    weights = words.weights
    places = [at for at, spots in enumerate(text.spots) if spots]
    said = [dict.fromkeys(word for *_, word in text.spots[at]) for at in places]
    best, found = (0.0, 0), (0, 0)
    for first, low in enumerate(places):
        held: dict[str, None] = {}
        number = 0
        for at, own in zip(places[first:], said[first:], strict=True):
            size = text.size(low, at + 1)
            if at > low and size > width:
                break
            held |= own
            number += len(text.spots[at])
            score = _score(held, number, weights)
            if score >= best[0] and (score, -size) > best:
                best, found = (score, -size), (low, at + 1)
    return found


def _grown(text: _Text, low: int, high: int, width: int) -> tuple[int, int]:
    """The run with what stands around it: a little before, then what follows, then more before."""
    last, core = len(text.segments), (low, high)
    high = max(high, low + 1)
    lead = text.size(low, high) + (width - text.size(low, high)) // 3
    while low > 0 and text.size(low - 1, high) <= lead and text.segments[low].kind is not Kind.HEADING:
        low -= 1
    while high < last and text.size(low, high + 1) <= width:
        high += 1
    while low > 0 and text.size(low - 1, high) <= width:
        low -= 1
    while low < core[0] and not text.segments[low - 1].ends_sentence:
        low += 1
    while core[0] < core[1] < high < last and not text.segments[high - 1].ends_sentence:
        high -= 1
    return _trimmed(text, low, high)


def _trimmed(text: _Text, low: int, high: int) -> tuple[int, int]:
    """The run without what says nothing at its edges: headings and heads of tables that lead to nothing,
    blank lines, the last lines of code and tables that began before it."""
    low = _after_stray_end(text, low, high)
    while high - low > 1 and text.segments[low].kind in _IDLE_AT_START:
        low += 1
    if high == len(text.segments):
        return low, high
    high = _before_bare_head(text, low, high)
    while high - low > 1 and text.segments[high - 1].kind in _IDLE_AT_END and not text.spots[high - 1]:
        high -= 1
    return low, high


def _after_stray_end(text: _Text, low: int, high: int) -> int:
    """Where the run goes on after code or a table that began before it and holds nothing asked for."""
    kind = text.segments[low].kind
    if not low or kind not in _LONG_BLOCKS or text.segments[low - 1].kind not in _LONG_BLOCKS[kind]:
        return low
    end = low
    while end < high and text.segments[end].kind is kind:
        end += 1
    return end if end < high and not any(text.spots[low:end]) else low


def _before_bare_head(text: _Text, low: int, high: int) -> int:
    """Where the run ends before the head of a table whose rows are cut off."""
    start = high
    while start > low and text.segments[start - 1].kind is Kind.ROW:
        start -= 1
    bare = high - start <= _HEAD_ROWS and text.segments[high].kind is Kind.ROW and start > low
    return start if bare and not any(text.spots[start:high]) else high


# ---- how it is shown -----------------------------------------------------------------------------


def _shown(text: _Text, low: int, high: int) -> str:
    first, last = text.segments[low], text.segments[high - 1]
    spots = [spot for each in text.spots[low:high] for spot in each]
    shown = marked(text.text, first.start, last.end, spots).strip("\n").rstrip()
    if first.kind is Kind.CODE:
        shown = f"{first.opening}\n{shown}"
    elif low and not text.segments[low - 1].ends_line:
        shown = f"… {shown.lstrip()}"
    if last.kind in (Kind.CODE, Kind.OPENING):
        return f"{shown}\n{_closing(last.opening)}"
    return shown if last.ends_line else f"{shown} …"


def _closing(opening: str) -> str:
    mark = opening.lstrip()
    return opening[: len(opening) - len(mark.lstrip(mark[:1]))]


def _start_of(content: str, words: Words, room: int) -> str:
    """As many whole segments of the beginning as there is room for."""
    text = _read(content, words, LONGEST)
    return _piece(text, 0, sum(1 for each in text.segments if each.end <= room))


def _end_of(content: str, words: Words, room: int) -> str:
    """As many whole segments of the end as there is room for."""
    text = _read(content, words, LONGEST)
    least = len(text.text) - room
    return _piece(text, sum(1 for each in text.segments if each.start < least), len(text.segments))


def _piece(text: _Text, low: int, high: int) -> str:
    """A run of segments, or nothing if there is nothing to read in it."""
    if all(each.kind in (*_IDLE_AT_START, *_IDLE_AT_END) for each in text.segments[low:high]):
        return ""
    return _shown(text, *_trimmed(text, low, high))


# ---- the longer context --------------------------------------------------------------------------


def _around(chunks: Sequence[Section], hit: int, max_chars: int) -> tuple[int, int]:
    """The hit and its neighbours, those under the same headings first, as far as there is room."""
    low, high = hit, hit + 1
    room = max_chars - len(chunks[hit].content) - sum(len(title) + 8 for title in chunks[hit].path)
    while True:
        sides = [
            at for at in (high, low - 1) if 0 <= at < len(chunks) and len(chunks[at].content) + 2 <= room
        ]
        if not sides:
            return low, high
        side = max(sides, key=lambda at: _shared(chunks[at].path, chunks[hit].path))
        room -= len(chunks[side].content) + 2
        low, high = min(low, side), max(high, side + 1)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many headings two chunks have in common."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _trail(chunk: Section) -> list[str]:
    """The headings above a chunk that do not stand in it."""
    inside = {_plain(title) for title in headings_in(chunk.content)}
    return [
        f"{'#' * min(depth, 6)} {title}"
        for depth, title in enumerate(chunk.path, start=1)
        if _plain(title) not in inside
    ]


def _below(content: str, above: str) -> str:
    """The text without a first heading that only repeats the one it stands under."""
    first, _, rest = content.partition("\n")
    repeats = above and [_plain(title) for title in headings_in(first)] == [_plain(above)]
    return rest.lstrip("\n") if repeats else content


def _plain(title: str) -> str:
    return "".join(sign for sign in title.lower() if sign.isalnum())
