"""Turns the blocks of a document into pieces that fit a chunk, taking the few that are too large apart."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from afresh.extract.chunk.blocks import scan
from afresh.extract.chunk.limits import BLANK_LINE, LINE, MAX_CHARS, MAX_REPEAT, ROW, SENTENCE, WORD

Trail = tuple[tuple[int, str], ...]  # levels and titles of the headings above, outermost first

_FENCE = re.compile(r"(`{3,}|~{3,})[^\n]*")
_LINES = re.compile(r"[^\n]+\n*|\n+")  # with the blank lines that follow
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")
_WORDS = re.compile(r".{1,400}(?:\s+|\Z)|.{1,400}", re.DOTALL)


class Piece(NamedTuple):
    """A stretch of text that is not cut; `rank` says how well the text may be cut before it."""

    text: str
    rank: int
    kind: str
    trail: Trail
    heading: bool = False
    close: str = ""  # ends the chunk before, where the cut is made
    reopen: str = ""  # begins the chunk that starts here


def pieces_of(text: str) -> list[Piece]:
    """Lists the pieces of a Markdown text; put together they are the text."""
    blocks = scan(text)
    ends = [block.start for block in blocks[1:]]
    ends.append(len(text))
    pieces: list[Piece] = []
    trail: Trail = ()
    for (start, kind, rank, level, title), end in zip(blocks, ends, strict=True):
        raw = text[start:end]
        if level:
            trail = _below(trail, level, title)
        piece = Piece(raw, level or rank, kind, trail, level > 0)
        if len(raw) <= MAX_CHARS:
            pieces.append(piece)
        else:
            pieces.extend(_apart(piece))
    return pieces


def _below(trail: Trail, level: int, title: str) -> Trail:
    above = tuple(step for step in trail if step[0] < level)
    return (*above, (level, title)) if title else above


def _apart(large: Piece) -> Iterator[Piece]:
    """A block that no chunk can hold, in pieces."""
    close, reopen, parts = "", "", _text_parts(large.text)
    if large.kind == "code":
        close, reopen = _fence(large.text)
        parts = _code_parts(large.text)
    elif large.kind == "table":
        reopen = _table_head(large.text)
        parts = _table_parts(large.text)
    for number, (text, rank) in enumerate(parts):
        if number == 0:
            yield large._replace(text=text)
        elif large.kind == "table" and rank != ROW:
            yield large._replace(text=text, rank=rank)
        else:
            yield large._replace(text=text, rank=rank, close=close, reopen=reopen)


def _table_head(table: str) -> str:
    """The head of a table with its line of dashes."""
    head = "".join(table.splitlines(keepends=True)[:2])
    return head if len(head) <= MAX_REPEAT else ""


def _table_parts(table: str) -> Iterator[tuple[str, int]]:
    """A table cut between rows; the first row stays with the head, which alone says nothing."""
    lines = table.splitlines(keepends=True)
    for row in ("".join(lines[:3]), *lines[3:]):
        if len(row) <= MAX_CHARS:
            yield row, ROW
        else:
            yield from _words(row, ROW)


def _fence(code: str) -> tuple[str, str]:
    """What closes a fenced block and what opens it again, with its indent; nothing for indented code."""
    first = code[: code.find("\n") + 1]
    mark = _FENCE.search(first)
    if mark is None:
        return "", ""
    indent = re.sub(r"[^\s>]", " ", first[: mark.start()])
    again = mark[0] if len(mark[0]) <= MAX_REPEAT else mark[1]
    return f"{indent}{mark[1]}\n", f"{indent}{again}\n"


def _code_parts(code: str) -> Iterator[tuple[str, int]]:
    """Code cut at line ends; the fences stay with the lines beside them."""
    lines = code.splitlines(keepends=True)
    while len(lines) > 2 and not lines[-1].strip(" \t\n`~>"):
        lines[-2:] = [lines[-2] + lines[-1]]
    if len(lines) > 1:
        lines[:2] = [lines[0] + lines[1]]
    rank = LINE
    for line in lines:
        if len(line) <= MAX_CHARS:
            yield line, rank
        else:
            yield from _words(line, rank)
        rank = BLANK_LINE if line.isspace() else LINE


def _text_parts(text: str) -> Iterator[tuple[str, int]]:
    """Text cut at line ends, longer lines after sentences, longer sentences between words."""
    for line in _LINES.findall(text):
        if len(line.rstrip()) <= MAX_CHARS:
            yield line, LINE
            continue
        rank = LINE
        for sentence in _sentences(line):
            if len(sentence) <= MAX_CHARS:
                yield sentence, rank
            else:
                yield from _words(sentence, rank)
            rank = SENTENCE


def _sentences(line: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(line):
        if end.end() > start:
            yield line[start : end.end()]
            start = end.end()
    if start < len(line):
        yield line[start:]


def _words(text: str, rank: int) -> Iterator[tuple[str, int]]:
    for part in _WORDS.finditer(text):
        yield part[0], rank
        rank = WORD
