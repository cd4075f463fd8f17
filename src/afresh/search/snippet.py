"""Extract the passage of a chunk that fits a query best, and the longer context of a hit.

A passage is a sequence of segments (highlight.py) of one chunk: the segments with most words of the query,
extended to both sides as far as they fit. It is cut at sentences and lines; `…` marks a cut line, and a cut
code block gets its closing fence.
"""

from bisect import bisect_left
from collections.abc import Sequence

from afresh.dataclass import dataclass
from afresh.model.fetch import Chunk
from afresh.search.highlight import (
    CLOSE,
    MAX_SEGMENT_CHARS,
    OPEN,
    UNMARKED,
    QueryWords,
    Segment,
    SegmentKind,
    Spot,
    mark,
    markable_spots,
    segments_of,
)
from afresh.search.stemming import shared_start
from afresh.text.normalize import headings_in

PASSAGE_CHARS = 400
CONTEXT_CHARS = 4_000
MAX_READ_CHARS = 20_000  # a chunk of links may be much longer than its readable text
_HEAD_ROWS = 2  # names and separator
_LONG_BLOCKS = {SegmentKind.CODE: (SegmentKind.CODE, SegmentKind.OPENING), SegmentKind.ROW: (SegmentKind.ROW,)}
_IDLE_AT_START = (SegmentKind.BLANK, SegmentKind.CLOSING)
_IDLE_AT_END = (SegmentKind.BLANK, SegmentKind.OPENING, SegmentKind.HEADING)


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    segments: Sequence[Segment]
    spots: Sequence[Sequence[Spot]]

    def size(self, low: int, high: int) -> int:
        return self.segments[high - 1].end - self.segments[low].start if high > low else 0


def snippet_of(content: str, words: Sequence[str] | QueryWords, *, width: int = PASSAGE_CHARS) -> str:
    """Return the part of a chunk that fits `words` (rarest first) best, with each match between U+0002 and U+0003."""
    asked = words if isinstance(words, QueryWords) else QueryWords(words)
    unmarked = content.translate(UNMARKED) if OPEN in content or CLOSE in content else content
    text = _read_around(unmarked.strip("\n"), asked, width)
    if not text.segments:
        return ""
    return _render(text, *_extend(text, *_find_best(text, asked, width), width))


def context_of(chunks: Sequence[Chunk], hit: int, max_chars: int = CONTEXT_CHARS) -> str:
    """Return the chunk of a hit with the headings above it and as many neighbouring chunks as fit."""
    if len(chunks[hit].content) > max_chars:
        return snippet_of(chunks[hit].content, (), width=max_chars)
    low, high = _neighbours(chunks, hit, max_chars)
    first, above = chunks[low], ""
    inside = set(map(_letters, headings_in(first.content)))
    trail = [(depth, title) for depth, title in enumerate(first.path, 1) if _letters(title) not in inside]
    parts = [f"{'#' * min(depth, 6)} {title}" for depth, title in trail]
    for chunk in chunks[low:high]:
        begin, _, rest = chunk.content.partition("\n")
        is_repeated = above and [*map(_letters, headings_in(begin))] == [_letters(above)]
        parts.append(rest.lstrip("\n") if is_repeated else chunk.content)
        above = ([*chunk.path, *headings_in(chunk.content)] or [""])[-1]
    return "\n\n".join(filter(None, parts))


def _read_around(text: str, words: QueryWords, width: int) -> _Text:
    """Split a text into segments; of a long text, split only the part with the most matches."""
    found = words.spots(text)
    max_chars = max(40, min(MAX_SEGMENT_CHARS, width // 2))
    if len(text) > 2 * width:
        middle = _densest(found, words, width)
        if len(text) > MAX_READ_CHARS:
            low = text.rfind("\n", 0, max(0, middle - MAX_READ_CHARS // 2)) + 1
            text, middle = text[low : low + MAX_READ_CHARS], middle - low
            found = words.spots(text)
        low = min(middle - width // 2, len(text) - width)
        near = _assign_spots(text, found, segments_of(text, max_chars, (low, middle + width + width // 2)))
        if any(near.spots) or not found:
            return near  # else only URLs matched there
    return _assign_spots(text, found, segments_of(text, max_chars))


def _densest(found: Sequence[Spot], words: QueryWords, width: int) -> int:
    """Return the position of the first match in the best-scored window of `width` characters."""
    best, place, last = 0.0, 0, 0
    held: dict[str, int] = {}
    for first, (begin, _, leaving) in enumerate(found):
        known = last
        while last < len(found) and found[last][0] < begin + width:
            word = found[last][2]
            held[word] = held.get(word, 0) + 1
            last += 1
        if last > known and (score := words.score(held, last - first)) > best:
            best, place = score, begin
        held[leaving] -= 1
        if not held[leaving]:
            del held[leaving]
    return place


def _assign_spots(text: str, found: Sequence[Spot], segments: Sequence[Segment]) -> _Text:
    starts = [start for start, _, _ in found]
    inside = [found[bisect_left(starts, each.start) : bisect_left(starts, each.end)] for each in segments]
    spots = [markable_spots(text, each, some) if some else [] for each, some in zip(segments, inside, strict=True)]
    return _Text(text, segments, spots)


def _find_best(text: _Text, words: QueryWords, width: int) -> tuple[int, int]:
    """Return the shortest sequence of segments with the best score; (0, 0) if nothing matches."""
    places = [at for at, spots in enumerate(text.spots) if spots]
    words_at = [dict.fromkeys(word for *_, word in text.spots[at]) for at in places]
    best, found = (0.0, 0), (0, 0)
    for first, low in enumerate(places):
        held: dict[str, None] = {}
        number = 0
        for at, own in zip(places[first:], words_at[first:], strict=True):
            size = text.size(low, at + 1)
            if at > low and size > width:
                break
            held |= own
            number += len(text.spots[at])
            score = words.score(held, number)
            if score >= best[0] and (score, -size) > best:
                best, found = (score, -size), (low, at + 1)
    return found


def _extend(text: _Text, low: int, high: int, width: int) -> tuple[int, int]:
    """Extend a range of segments up to `width`: use a third of the free space before it, then the rest after it."""
    last, core = len(text.segments), (low, high)
    high = max(high, low + 1)
    lead = text.size(low, high) + (width - text.size(low, high)) // 3
    while low > 0 and text.size(low - 1, high) <= lead and text.segments[low].kind is not SegmentKind.HEADING:
        low -= 1
    while high < last and text.size(low, high + 1) <= width:
        high += 1
    while low > 0 and text.size(low - 1, high) <= width:
        low -= 1
    while low < core[0] and not text.segments[low - 1].ends_sentence:
        low += 1
    while core[0] < core[1] < high < last and not text.segments[high - 1].ends_sentence:
        high -= 1
    return _trim(text, low, high)


def _trim(text: _Text, low: int, high: int) -> tuple[int, int]:
    """Remove useless segments from the ends of a range: blank lines; at its end also headings and table heads."""
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
    """Move the start of a range past the rest of a code block or table that began before it, unless it has a match."""
    kind = text.segments[low].kind
    if not low or kind not in _LONG_BLOCKS or text.segments[low - 1].kind not in _LONG_BLOCKS[kind]:
        return low
    end = next((at for at in range(low, high) if text.segments[at].kind is not kind), high)
    return end if end < high and not any(text.spots[low:end]) else low


def _before_bare_head(text: _Text, low: int, high: int) -> int:
    """Move the end of a range before a table head whose rows are cut off."""
    if text.segments[high].kind is not SegmentKind.ROW:
        return high
    start = next((at for at in range(high, low, -1) if text.segments[at - 1].kind is not SegmentKind.ROW), low)
    return start if low < start >= high - _HEAD_ROWS and not any(text.spots[start:high]) else high


def _render(text: _Text, low: int, high: int) -> str:
    first, last = text.segments[low], text.segments[high - 1]
    spots = [spot for each in text.spots[low:high] for spot in each]
    passage = mark(text.text, first.start, last.end, spots).strip("\n").rstrip()
    if first.kind is SegmentKind.CODE:
        passage = f"{first.opening}\n{passage}"
    elif low and not text.segments[low - 1].ends_line:
        passage = f"… {passage.lstrip()}"
    if last.kind in (SegmentKind.CODE, SegmentKind.OPENING):
        fence = last.opening.lstrip()
        return f"{passage}\n{last.opening[: len(last.opening) - len(fence.lstrip(fence[:1]))]}"
    return passage if last.ends_line else f"{passage} …"


def _neighbours(chunks: Sequence[Chunk], hit: int, max_chars: int) -> tuple[int, int]:
    """Return the range of the hit and the neighbours that fit into `max_chars`, those with the same headings first."""
    low, high = hit, hit + 1
    room = max_chars - len(chunks[hit].content) - sum(len(title) + 8 for title in chunks[hit].path)
    while sides := [at for at in (high, low - 1) if 0 <= at < len(chunks) and len(chunks[at].content) + 2 <= room]:
        side = max(sides, key=lambda at: shared_start(chunks[at].path, chunks[hit].path))
        room -= len(chunks[side].content) + 2
        low, high = min(low, side), max(high, side + 1)
    return low, high


def _letters(title: str) -> str:
    return "".join(filter(str.isalnum, title.lower()))
