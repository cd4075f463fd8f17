"""The text of a page without its body: the words it holds, in no order that tells what it said."""

from dataclasses import replace

from afresh.core.analysis import words_in
from afresh.core.looks import Chunk, Terms
from afresh.core.text import headings_over


def signals(text: str) -> str:
    """Every word as often as it stands there, sorted: enough to find the page, not enough to read it."""
    return " ".join(sorted(words_in(text)))


def only_signals(chunk: Chunk) -> Chunk:
    """A chunk that can be found by its words and headings, and says nothing."""
    heading = signals(chunk.terms.heading or headings_over(chunk))
    content = signals(chunk.terms.content or chunk.content)
    return replace(chunk, content=content, path=(), level=0, terms=Terms(heading or None, None))
