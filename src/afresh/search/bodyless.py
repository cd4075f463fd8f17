"""The text of a page without its body: the words it holds, in no order that tells what it said."""

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

from afresh.model.fetch import Chunk, Terms
from afresh.search.query import parse
from afresh.search.stemming import words_in
from afresh.text.normalize import headings_over

SHUFFLES = 3  # orders that are tried


def signals(text: str) -> str:
    """Every word as often as it stands there, shuffled: enough to find the page, not enough to read it.

    The order is that of a checksum, the same for the same words; another one where it would repeat three
    words as they stood. The alphabet would do that more often: it puts "a", "after" and "again" together.
    """
    words = words_in(text)
    said = set(_threes(words))
    orders = (_shuffled(words, number) for number in range(SHUFFLES))
    least = min(orders, key=lambda order: sum(three in said for three in _threes(order)))
    return " ".join(least)


def _shuffled(words: Sequence[str], number: int) -> list[str]:
    return sorted(words, key=lambda word: (crc32(f"{number} {word}".encode("utf-8", "replace")), word))


def _threes(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [three for three in zip(words, words[1:], words[2:], strict=False) if len(set(three)) > 1]


def only_signals(chunk: Chunk) -> Chunk:
    """A chunk that can be found by its words and headings, and says nothing."""
    heading = signals(chunk.terms.heading or headings_over(chunk))
    content = signals(chunk.terms.content or chunk.content)
    return replace(chunk, content=content, path=(), level=0, terms=Terms(heading or None, None))


def needs_text(query: str, *, context: bool) -> bool:
    """Whether a search asks for what words alone cannot tell: a phrase, or what stands around a passage."""
    return context or bool(parse(query).phrases)


def without_text(labels: Sequence[str], query: str) -> list[str]:
    """What such a search is told where sources keep no text."""
    if not labels:
        return []
    which = f"{', '.join(labels)} {'keeps' if len(labels) == 1 else 'keep'} no text (storage.body: none)"
    return [f"{which}: phrases in quotes find nothing there" if parse(query).phrases else f"{which} to show"]
