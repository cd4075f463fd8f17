"""The lines of a PDF to Markdown: headings, paragraphs, lists and code, told by size, place and font."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, groupby, pairwise, takewhile
from statistics import median
from typing import NamedTuple

from afresh.extract.written import fenced, heading, joined, plain

LARGER = 1.15  # times the usual size: a heading
LONGEST_HEADING = 160
MOST_LEVELS = 5
FEWEST_IN_OUTLINE = 3
FEWEST_REPEATS = 3  # pages that begin or end with the same line
LOOSER = 1.3  # times the usual distance of lines: another paragraph
MORE_HEADINGS = 0.3  # of all lines: then size tells nothing

_BULLET = re.compile(r"[•◦▪●‣∙⁃■□–]\s*(?=\S)")
_LEADERS = re.compile(r"(?<!\s)(?:\s*+[.·…]){4,}+\s*+")
_PAGE_NUMBER = re.compile(
    r"(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,8})(?:\s*(?:/|of)\s*\d{1,4})?|[-–]\s*\d{1,4}\s*[-–]", re.I
)
_END_NUMBERS = re.compile(r"^\d{1,4}(?=\s)|(?<=\s)\d{1,4}$")
_DIGITS = re.compile(r"\d+")
_NO_LETTER = re.compile(r"[\W\d_]+")
_ENDED = (".", "!", "?", ":", "。", "！", "？")

Outline = Mapping[tuple[int, str], int]  # page and letters of a title to the level of its heading


class Line(NamedTuple):
    """A line of text and how it is set."""

    text: str
    page: int
    size: float = 10.0
    left: float = 0.0
    base: float = 0.0  # height of its baseline over the foot of the page
    foot: float = 0.0  # the same where it ends: words that were divided join the lines they stood on
    fixed: bool = False  # in a font whose letters are all equally wide


def letters(text: str) -> str:
    """What two spellings of one title have in common."""
    return _NO_LETTER.sub("", text).casefold()


def markdown_of(lines: Sequence[Line], outline: Outline) -> str:
    """The Markdown of all pages, with their borders gone."""
    kept = _without_margins(lines)
    levels = _levels(kept, outline)
    pitch = _pitch(kept)
    return joined(_blocks(kept, levels, pitch))


def title_in(lines: Sequence[Line]) -> str:
    """The largest words of the first page, where they stand out."""
    first = [line for line in lines if line.page == lines[0].page and _may_head(line)][:30]
    largest = max((line.size for line in first), default=0.0)
    if not first or largest <= median(line.size for line in lines) * LARGER:
        return ""
    return " ".join(
        [line.text for line in takewhile(lambda line: line.size == largest, _from(first, largest))]
    )


def _from(lines: Sequence[Line], size: float) -> Iterator[Line]:
    return dropwhile(lambda line: line.size != size, lines)


def _without_margins(lines: Sequence[Line]) -> list[Line]:
    """The lines without page numbers and what stands at the head or foot of page after page."""
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    edges = [[at for at in {0, 1, len(page) - 2, len(page) - 1} if 0 <= at < len(page)] for page in pages]
    repeated: Counter[str] = Counter()
    counted: Counter[int] = Counter()
    for page, edge in zip(pages, edges, strict=True):
        repeated.update({_DIGITS.sub("", page[at].text) for at in edge})
        counted.update({shift for at in edge for shift in _shifts(page[at])})
    often = max(FEWEST_REPEATS, len(pages) // 4)
    usual = {shift for shift, times in counted.most_common(1) if times >= often}

    def is_margin(line: Line) -> bool:
        same = repeated[_DIGITS.sub("", line.text)] >= often
        return same or bool(_PAGE_NUMBER.fullmatch(line.text)) or not usual.isdisjoint(_shifts(line))

    kept: list[Line] = []
    for page in pages:
        above = len(list(takewhile(is_margin, page[:2])))
        below = len(list(takewhile(is_margin, reversed(page[max(above, len(page) - 2) :]))))
        kept += page[above : len(page) - below]
    return kept


def _shifts(line: Line) -> Iterator[int]:
    """How far the numbers at both ends of a line are from its page: always as far, if they count pages."""
    for number in _END_NUMBERS.findall(line.text):
        yield int(number) - line.page


def _levels(lines: Sequence[Line], outline: Outline) -> dict[int, int]:
    """The levels of the lines that are headings: by the outline of the file, else by their size."""
    told = dict(_told(lines, outline))
    return told if len(told) >= FEWEST_IN_OUTLINE else _by_size(lines)


def _told(lines: Sequence[Line], outline: Outline) -> Iterator[tuple[int, int]]:
    left = dict(outline)
    for at, line in enumerate(lines):
        key = (line.page, letters(line.text))
        if key in left:
            yield at, left.pop(key)
        elif at + 1 < len(lines) and len(line.text) < LONGEST_HEADING:
            whole = (line.page, letters(line.text + lines[at + 1].text))
            if key[1] and whole in left:
                level = left.pop(whole)
                yield at, level
                yield at + 1, level


def _by_size(lines: Sequence[Line]) -> dict[int, int]:
    amounts: Counter[float] = Counter()
    for line in lines:
        amounts[line.size] += len(line.text)
    usual = max(amounts, key=lambda size: amounts[size], default=0.0)
    large = [at for at, line in enumerate(lines) if line.size > usual * LARGER and _may_head(line)]
    if len(large) > len(lines) * MORE_HEADINGS and len(lines) > 20:
        return {}
    sizes = sorted({lines[at].size for at in large}, reverse=True)
    return {at: min(sizes.index(lines[at].size) + 1, MOST_LEVELS) for at in large}


def _may_head(line: Line) -> bool:
    return len(line.text) <= LONGEST_HEADING and not line.fixed and bool(letters(line.text))


def _pitch(lines: Sequence[Line]) -> float:
    """The usual distance from line to line."""
    steps = [one.foot - other.base for one, other in pairwise(lines) if one.page == other.page]
    return median([step for step in steps if step > 0] or [12.0])


def _blocks(lines: Sequence[Line], levels: Mapping[int, int], pitch: float) -> Iterator[str]:
    open_lines: list[Line] = []
    for at, line in enumerate(lines):
        if open_lines and not _goes_on(open_lines[-1], line, levels.get(at - 1), levels.get(at), pitch):
            yield _block(open_lines, levels.get(at - 1))
            open_lines = []
        open_lines.append(line)
    if open_lines:
        yield _block(open_lines, levels.get(len(lines) - 1))


def _goes_on(before: Line, line: Line, level_before: int | None, level: int | None, pitch: float) -> bool:
    """Whether a line belongs to the block of the line before it."""
    if level_before != level or before.fixed != line.fixed:
        return False
    if line.fixed:
        return True
    step = before.foot - line.base
    flows = before.page == line.page and step >= 0
    if level is not None:
        return flows and step < 2.5 * line.size
    if _BULLET.match(line.text):
        return False
    if flows:
        return step <= max(pitch, line.size) * LOOSER
    return line.text[:1].islower() and not before.text.endswith(_ENDED)


def _block(lines: Sequence[Line], level: int | None) -> str:
    if lines[0].fixed:
        return _code(lines)
    text = _LEADERS.sub(" … ", " ".join(line.text for line in lines)).strip()
    if level is not None:
        return heading(level, text)
    bullet = _BULLET.match(text)
    return f"- {text[bullet.end() :]}" if bullet else plain(text)


def _code(lines: Sequence[Line]) -> str:
    """Lines of code with their indents, as far as these can be told from where they begin."""
    edge = min(line.left for line in lines)
    width = max(lines[0].size * 0.6, 1.0)
    return fenced("\n".join([" " * min(round((line.left - edge) / width), 40) + line.text for line in lines]))
