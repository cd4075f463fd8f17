"""Normalise text, compute the hashes that detect changes, and sketches that estimate similarity."""

import hashlib
import re
from collections.abc import Sequence
from itertools import pairwise
from zlib import crc32

from afresh.dataclass import replace
from afresh.model.fetch import Chunk, Link, SearchTerms
from afresh.search.stemming import analysed


def normalise(text: str) -> str:
    """Return the text with `\\n` line ends, no trailing blanks on a line, no blank lines at either end."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join([line.rstrip() for line in unified.split("\n")]).strip("\n")


def text_hash(text: str) -> str:
    """Return the SHA-256 (hex) of the exact text; lone surrogates are hashed, too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


EMPTY_HASH = text_hash("")


def bytes_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def content_hash(text: str) -> str:
    """Return the SHA-256 (hex) of the normalised text; indexing, embedding and summaries depend on it."""
    return text_hash(normalise(text))


def links_hash(links: Sequence[Link]) -> str:
    """Return the SHA-256 (hex) of targets, visible texts and nofollow marks of the links, in any order.

    They are sorted, because a menu or a list of teasers in another order is the same set of links: a move
    costs no scoring, but a new, lost, renamed or newly nofollow link always changes the hash.
    """
    lines = sorted({f"{link.url}\x1f{link.text}\x1f{link.follow:d}" for link in links})
    return text_hash("\x1e".join(lines))


def headings_over(chunk: Chunk) -> str:
    """Return the headings above and in a chunk, one per line."""
    return "\n".join(dict.fromkeys([*chunk.path, *headings_in(chunk.content)]))


def with_terms(chunk: Chunk, config: str) -> Chunk:
    """Return a chunk with its search terms for a configuration."""
    content = analysed(chunk.content, config)
    if content is None and all(analysed(title, config) is None for title in chunk.path):
        return chunk
    return replace(chunk, terms=SearchTerms(analysed(headings_over(chunk), config), content))


def headings_in(markdown: str) -> list[str]:
    """Return the headings in a piece of Markdown, outside of code, in order."""
    found, fence = [], ""
    for line in markdown.splitlines():
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        elif not fence and line.startswith("#"):
            title = line.lstrip("#")
            if title.startswith(" ") and len(line) - len(title) <= 6:
                found.append(title.strip())
    return found


SIZE = 48  # numbers in a sketch: similarity is accurate within about 0.07
WIDTH = 8  # hex digits of one number
MOST = 400_000  # characters; the rest is ignored
_WORD = re.compile(r"\b[^\W\d]+\b")  # without numbers, dates and ids, which contain digits


def sketch_of(text: str, url: str = "") -> str:
    """Return the smallest hashes of the word pairs of a text, in order, as hex; "" without words.

    The URL of the page is left out: an error page that contains it is the same error page everywhere.
    """
    text = text[:MOST]
    path = "/" + url.partition("://")[2].partition("/")[2]
    for name in (url, path):
        text = text.replace(name, " ") if len(name) > 1 else text
    words = _WORD.findall(text.casefold())
    pairs = {f"{first} {second}" for first, second in pairwise(words)} or set(words)
    hashes = {crc32(pair.encode("utf-8", "surrogatepass")) for pair in pairs}
    return "".join(f"{number:0{WIDTH}x}" for number in sorted(hashes)[:SIZE])


def likeness(one: str, other: str) -> float:
    """Return the share of common word pairs of two texts from 0 to 1, estimated from their sketches."""
    first, second = _numbers(one), _numbers(other)
    smallest = sorted(first | second)[:SIZE]
    if not smallest:
        return 1.0
    return len((first & second).intersection(smallest)) / len(smallest)


def _numbers(sketch: str) -> set[str]:
    return {sketch[at : at + WIDTH] for at in range(0, len(sketch), WIDTH)}
