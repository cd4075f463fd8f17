"""Split Markdown into segments for snippets, and find and mark the words of a query in them."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from afresh.search.stemming import SPACELESS, shared_start

MAX_SEGMENT_CHARS = 200  # of prose that has spaces
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~).*\n?", re.MULTILINE)
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
# A table without leading pipes:
_BARE_TABLE = re.compile(r"^[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+$", re.MULTILINE)
# These patterns start with a set of characters, which makes a search ten times faster.
_SENTENCE_END = re.compile(
    r"[.!?…。！？\n](?:(?<=\n)|(?<=[。！？])[。！？]*[」』”）]*\n?"
    r"|(?<![\d.!?…].)(?<!\.\w.)[.!?…]{0,19}[\"'”’)\]*_]{0,20}(?=\s)[ \t]*\n?)"
)
# After a space, or between letters of a script without spaces.
_WORD_END = re.compile(r"(?<=\s)(?=\S)|(?<=[\u2e80-\ud7ff\uf900-\uffee])(?=[\u2e80-\u3098\u309b-\ud7ff\uf900-\uffee])")

# Inline elements of Markdown and how they start; the group names tell what may be marked.
_INLINE_START = re.compile(r"[`\[*<&{!hw](?:(?<![!hw])|(?<=!)(?=\[)|(?<=h)(?=ttps?:)|(?<=w)(?=ww\.))")
_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<link>!?\[(?P<words>(?:[^\[\]\\]|\\.|\[[^\[\]]{0,200}\]){0,500})\]"
    r"(?:\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?:\s+\"[^\"]{0,200}\")?\)|\[[^\[\]]{0,200}\]))"
    r"|(?P<definition>\[[^\[\]\n]{1,200}\]:[ \t]*\S*[/.#]\S*[^\n]*)"
    r"|(?P<strong>(?P<stars>\*{1,2})(?=[^\s*])[^*\n]{1,200}?(?<=[^\s*])(?P=stars)(?!\*))"
    r"|(?P<tag><[A-Za-z/!][^<>]{0,500}>)"
    r"|(?P<url>(?:https?://|www\.)[^\s<>\"`|。、（）「」]+)"
    r"|(?P<entity>&#?[A-Za-z0-9]{1,31};)"
    r"|(?P<attributes>\{ ?#[^{}\n]{1,200}\})"
)


class SegmentKind(Enum):
    PROSE = "prose"
    HEADING = "heading"
    ROW = "row"
    CODE = "code"
    OPENING = "opening"  # the line that opens a code block
    CLOSING = "closing"
    BLANK = "blank"


class InlineSpan(NamedTuple):
    """An inline element such as a link or a URL; only its part `words` may be highlighted."""

    start: int
    end: int
    words: tuple[int, int] | None = None


class Segment(NamedTuple):
    """A part of a text, such as a sentence or a table row, that a snippet shows whole or not at all."""

    start: int
    end: int
    kind: SegmentKind
    opening: str = ""  # in a code block: the line that opens it
    ends_line: bool = True  # False: the next segment continues its line
    ends_sentence: bool = True  # False: the next segment continues its sentence, which is too long for one
    inlines: list[InlineSpan] | None = None  # the inline elements of the surrounding prose


def segments_of(text: str, max_chars: int = MAX_SEGMENT_CHARS, within: tuple[int, int] | None = None) -> list[Segment]:
    """Return the segments of a text in order: all, or only those of blocks that overlap the range `within`."""
    low, high = within or (0, len(text))
    found: list[Segment] = []
    for block in _blocks(text, _paragraph_start(text, low)):
        if block.start > high:
            break
        if block.end < low:
            continue
        if block.kind is SegmentKind.PROSE:
            found += _sentences(text, block.start, block.end, max_chars)
        else:
            found.append(block)
    return found


def _paragraph_start(text: str, place: int) -> int:
    """Return the start of the paragraph or code block around a position, from which to parse."""
    begin, fence = 0, ""
    for line in _FENCE_LINE.finditer(text, 0, max(place, 0)):
        before, fence = fence, _fence_after(line[0], fence)
        if fence != before:
            begin = line.start() if fence else line.end()
    return begin if fence or place <= 0 else max(begin, text.rfind("\n\n", 0, place) + 1)


def _blocks(text: str, begin: int) -> Iterator[Segment]:
    """Yield each line of code, heading and table row as a segment, and the prose between such lines as one segment."""
    pipe = "" if _BARE_TABLE.search(text) else "|"
    opening, fence, prose, end = "", "", begin, begin
    for line in text[begin:].splitlines(keepends=True):
        start, end = end, end + len(line)
        before, fence = fence, _fence_after(line, fence) if line.lstrip(" \t").startswith(("```", "~~~")) else fence
        if before:
            kind = SegmentKind.CODE if fence else SegmentKind.CLOSING
        else:
            opening = line.rstrip() if fence else ""
            kind = SegmentKind.OPENING if fence else _kind(line, pipe)
        if kind is SegmentKind.PROSE:
            continue
        if prose < start:
            yield Segment(prose, start, SegmentKind.PROSE)
        yield Segment(start, end, kind, opening)
        prose = end
    if prose < end:
        yield Segment(prose, end, SegmentKind.PROSE)


def _fence_after(line: str, fence: str) -> str:
    """Return the fence of the code block that is open after a line; empty if none is."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if fence:
        return "" if mark[1].startswith(fence) and not mark[2].strip() else fence
    return "" if mark[1][0] == "`" and "`" in mark[2] else mark[1]


def _kind(line: str, pipe: str) -> SegmentKind:
    if line.isspace():
        return SegmentKind.BLANK
    if "#" in line and _HEADING.match(line):
        return SegmentKind.HEADING
    return SegmentKind.ROW if "|" in line and line.lstrip().startswith(pipe) else SegmentKind.PROSE


def inlines_of(text: str, start: int, end: int) -> list[InlineSpan]:
    found: list[InlineSpan] = []
    at = start
    while (begin := _INLINE_START.search(text, at, end)) is not None:
        inline = _INLINE.match(text, begin.start(), end)
        if inline is None:
            at = begin.start() + 1
        else:
            found.append(InlineSpan(*inline.span(), _markable_span(inline)))
            at = inline.end()
    return found


def _markable_span(inline: re.Match[str]) -> tuple[int, int] | None:
    if marks := inline["ticks"] or inline["stars"]:
        return inline.start() + len(marks), inline.end() - len(marks)
    if inline["link"] and not inline["link"].startswith("!") and "](" not in inline["words"]:
        return inline.span("words")
    return None


def _outside(places: Iterable[int], inlines: Iterable[InlineSpan]) -> list[int]:
    """Return the positions that are not inside an inline element; both arguments are sorted."""
    found, spans = [], iter(inlines)
    span = next(spans, None)
    for place in places:
        while span is not None and span.end <= place:
            span = next(spans, None)
        if span is None or place <= span.start:
            found.append(place)
    return found


def _sentences(text: str, start: int, end: int, max_chars: int) -> Iterator[Segment]:
    inlines = inlines_of(text, start, end)
    low = start
    for high in [*_outside([each.end() for each in _SENTENCE_END.finditer(text, start, end)], inlines), end]:
        part = last = low
        if high - low > max_chars:
            near = [each for each in inlines if each.start < high and each.end > low]
            for place in [*_outside([each.end() for each in _WORD_END.finditer(text, low + 1, high)], near), high]:
                if place - part > max_chars and last > part:
                    yield Segment(part, last, SegmentKind.PROSE, "", text[last - 1] == "\n", False, inlines)
                    part = last
                last = place
        if high > low:
            ends_line = high == end or text[high - 1] == "\n"
            yield Segment(part, high, SegmentKind.PROSE, "", ends_line, True, inlines)
        low = high


OPEN, CLOSE = "\x02", "\x03"
UNMARKED = str.maketrans("", "", OPEN + CLOSE)
MAX_QUERY_WORDS = 64

_TOKEN = re.compile(rf"[^\W_{SPACELESS}](?:[^\W_{SPACELESS}]|[\u0300-\u036f])*")
_RUN = re.compile(rf"[{SPACELESS}]+")  # text of a script without spaces: words are searched anywhere in it
_NON_ASCII_WORD = re.compile(r"[^\W\x00-\x7f]|[\u0300-\u036f]")  # letters, digits and accents
_WORD_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|。、（）「」]+")

_SUFFIXES = "s es ed d ing er ers r rs e ies y ied ier ying ly ion ions ation ations able ment ments en n"
_ENDINGS = frozenset(("", *_SUFFIXES.split()))
_DOUBLED = frozenset(("ing", "ed", "er", "ers"))
_MIN_STEM_CHARS = 3
_END = attrgetter("end")

Spot = tuple[int, int, str]  # start and end of a match, and the word of the query


class QueryWords:
    """The words of a query, prepared for matching, rarest first."""

    def __init__(self, words: Sequence[str]) -> None:
        tokens = dict.fromkeys(part for word in words for part in _TOKEN.findall(word))
        runs = dict.fromkeys(run for word in words for run in _RUN.findall(word))
        self.folded = {fold(word): None for word in list(tokens)[:MAX_QUERY_WORDS]}
        self.runs = list(runs)[:MAX_QUERY_WORDS]
        self._heads = frozenset(word[:_MIN_STEM_CHARS] for word in self.folded)
        heads = "|".join(sorted(re.escape(head) for head in self._heads if head.isascii()))
        self._beginning = re.compile(f"(?:{heads})[a-z0-9]*" if heads else "(?!)")
        self._known: dict[str, str | None] = {}
        self._found: dict[str, list[Spot]] = {}
        every = [*self.folded, *self.runs]
        # similar weights, slightly higher for rarer words
        self.weights = {word: 1.0 + 0.5 * (len(every) - place) / len(every) for place, word in enumerate(every)}

    def score(self, held: Iterable[str], spots: int) -> float:
        """Return a score for a passage with these query words (`held`) and this number of matches (`spots`)."""
        return sum(map(self.weights.__getitem__, held)) + 0.02 * min(spots, 10)

    def spots(self, text: str) -> list[Spot]:
        """Return where words of the query occur in a text, in order; relevance and snippet read the same texts."""
        if text not in self._found:
            self._found[text] = self._search(text)
        return self._found[text]

    def _search(self, text: str) -> list[Spot]:
        plain = text.isascii() or _NON_ASCII_WORD.search(text) is None
        tokens = self._plain_tokens(text.lower()) if plain else _TOKEN.finditer(text)
        found: list[Spot] = []
        for token in tokens if self.folded else ():
            each = token[0]
            word = self._known[each] if each in self._known else self._query_word(each)
            if word is not None:
                found.append((token.start(), token.end(), word))
        if not self.runs or plain:
            return found
        return sorted([*found, *(spot for run in self.runs for spot in _in_run(text, run))])

    def _plain_tokens(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the tokens of a lower-case text that begin with the first three characters of a query word."""
        for token in self._beginning.finditer(text):
            start = token.start()
            if not start or text[start - 1] not in _WORD_CHARS:
                yield token

    def _query_word(self, token: str) -> str | None:
        folded = fold(token)
        word = folded if folded in self.folded else None
        if word is None and any(folded[:size] in self._heads for size in range(1, _MIN_STEM_CHARS + 1)):
            word = next((each for each in self.folded if same_stem(each, folded)), None)
        self._known[token] = word
        return word


def _in_run(text: str, run: str) -> Iterator[Spot]:
    """Yield where `run` (text in a script without spaces) occurs in a text; or else, where its character pairs do."""
    pieces = [run] if run in text or len(run) < 3 else [run[at : at + 2] for at in range(len(run) - 1)]
    for piece in pieces:
        for match in re.finditer(re.escape(piece), text):
            yield *match.span(), run


@lru_cache(maxsize=4096)
def fold(word: str) -> str:
    """Return the word in lower case and without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", "".join(each for each in parts if not unicodedata.combining(each)))


def same_stem(one: str, other: str) -> bool:
    """Return whether two words differ only in their endings: index and indexes, retry and retries."""
    if one == other:
        return True
    shared = shared_start(one, other)
    if shared < _MIN_STEM_CHARS or not (one.isalpha() and other.isalpha()):
        return len(one) > 1 and "\uac00" <= one[0] <= "\ud7a3" and other.startswith(one)  # Korean
    if not one.isascii():  # endings of other languages are unknown, only their usual length
        return shared > _MIN_STEM_CHARS and max(len(one), len(other)) - shared <= _MIN_STEM_CHARS
    return _is_ending(one[:shared], one[shared:]) and _is_ending(one[:shared], other[shared:])


def _is_ending(stem: str, rest: str) -> bool:
    return rest in _ENDINGS or (rest[:1] == stem[-1] and rest[1:] in _DOUBLED)


def markable_spots(text: str, segment: Segment, found: Sequence[Spot]) -> list[Spot]:
    """Return the matches in a segment that may be marked, without those in URLs, tags and fences of code."""
    if segment.kind in (SegmentKind.OPENING, SegmentKind.CLOSING, SegmentKind.BLANK):
        return []
    if segment.kind is SegmentKind.CODE:
        inlines = [InlineSpan(*url.span()) for url in _URL.finditer(text, segment.start, segment.end)]
    else:
        inlines = segment.inlines if segment.inlines is not None else inlines_of(text, segment.start, segment.end)
    return list(_markable_spots(text, inlines, found)) if inlines else list(found)


def _markable_spots(text: str, inlines: Sequence[InlineSpan], found: Sequence[Spot]) -> Iterator[Spot]:
    for spot in found:
        at = bisect_right(inlines, spot[0], key=_END)
        if at == len(inlines) or spot[1] <= inlines[at].start:
            yield spot
        elif (words := inlines[at].words) is not None and words[0] <= spot[0] and spot[1] <= words[1]:
            yield from _markable_spots(text, inlines_of(text, *words), [spot])


def mark(text: str, start: int, end: int, spots: Iterable[Spot]) -> str:
    """Return a range of a text with each match enclosed in U+0002 and U+0003; join matches that `_` separates."""
    merged: list[tuple[int, int]] = []
    for low, high, _ in sorted(spots):
        if merged and (low <= merged[-1][1] or text[merged[-1][1] : low] == "_"):
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    parts, at = [], start
    for low, high in merged:
        if low >= at and high <= end:
            parts += [text[at:low], OPEN, text[low:high], CLOSE]
            at = high
    return "".join([*parts, text[at:end]])
