"""Text as it is compared: one normal form, and the hashes that gate all further work."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from afresh.model.fetch import Chunk, Link, Terms
from afresh.search.stemming import analysed


def normalise(text: str) -> str:
    """The text with `\\n` line ends, no trailing blanks on a line, no blank lines at either end."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join([line.rstrip() for line in unified.split("\n")]).strip("\n")


def text_hash(text: str) -> str:
    """SHA-256 (hex) of the text exactly as it is; lone surrogates are hashed too, never refused."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


EMPTY_HASH = text_hash("")


def bytes_hash(data: bytes) -> str:
    """SHA-256 (hex) of a body as it came."""
    return hashlib.sha256(data).hexdigest()


def content_hash(text: str) -> str:
    """SHA-256 (hex) of the normal form of the text: it gates index, embeddings and summary."""
    return text_hash(normalise(text))


def links_hash(links: Sequence[Link]) -> str:
    """SHA-256 (hex) over targets, visible texts and nofollow marks of the links, whatever their order.

    Sorted, because a menu or a list of teasers that comes in another order is the same set of links:
    a move costs no scoring, while a new, lost, renamed or newly nofollow link always shows.
    """
    lines = sorted({f"{link.url}\x1f{link.text}\x1f{link.follow:d}" for link in links})
    return text_hash("\x1e".join(lines))


def headings_over(chunk: Chunk) -> str:
    """The headings that a chunk stands under or holds, a line each."""
    return "\n".join(dict.fromkeys([*chunk.path, *headings_in(chunk.content)]))


def with_terms(chunk: Chunk, config: str) -> Chunk:
    """A chunk with what is searched of it under a configuration."""
    content = analysed(chunk.content, config)
    if content is None and all(analysed(title, config) is None for title in chunk.path):
        return chunk
    return replace(chunk, terms=Terms(analysed(headings_over(chunk), config), content))


def headings_in(markdown: str) -> list[str]:
    """The headings that stand in a piece of Markdown, outside its code, in order."""
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
