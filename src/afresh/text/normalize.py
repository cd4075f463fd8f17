"""Normalise text, and compute hashes that detect changes and sketches that estimate similarity."""

import hashlib
import re
from collections.abc import Sequence
from zlib import crc32

from afresh.dataclass import replace
from afresh.model.fetch import Chunk, Link, SearchTerms
from afresh.search.stemming import analysed, beyond_ascii


def normalise(text: str) -> str:
    """Return the text with newlines as line ends, without blanks at line ends and blank lines at both ends."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join([line.rstrip() for line in unified.split("\n")]).strip("\n")


def text_hash(text: str) -> str:
    """Return the SHA-256 (hex) of a text; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


EMPTY_HASH = text_hash("")


def content_hash(text: str) -> str:
    """Return the SHA-256 (hex) of the normalised text; a page is indexed again only if this hash changes."""
    return text_hash(normalise(text))


def links_hash(links: Sequence[Link]) -> str:
    """Return the SHA-256 (hex) of links in any order, so that a reordered menu does not cause new link scores."""
    lines = sorted({f"{link.url}\x1f{link.text}\x1f{link.follow:d}" for link in links})
    return text_hash("\x1e".join(lines))


def with_search_terms(chunk: Chunk, title: str | None, config: str) -> Chunk:
    """Return a copy of the chunk with headings and terms for full-text search; `title` holds the terms of the title."""
    heading = "\n".join(dict.fromkeys([*chunk.path, *headings_in(chunk.content)]))
    content = analysed(chunk.content, config)
    if content is None and all(analysed(title, config) is None for title in chunk.path):
        return replace(chunk, heading=heading, terms=SearchTerms(title))
    return replace(chunk, heading=heading, terms=SearchTerms(title, analysed(heading, config), content))


def headings_in(markdown: str) -> list[str]:
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


SIZE = 48  # hashes per sketch, with which the estimated similarity has an error of about 0.07
WIDTH = 8  # hex digits per hash
MOST = 400_000  # characters of a text that are used
_WORD = re.compile(r"\b[^\W\d]+\b")  # words without digits, so that numbers, dates and ids do not count
FEW_OTHERS = 16  # different characters beyond ASCII that are replaced one by one
_DIGITS = b"0123456789"
_BREAKS = bytes(byte for byte in range(128) if not (chr(byte).isalnum() or byte == ord("_")))
_TO_WORDS = bytes(range(256)).lower().translate(bytes.maketrans(_BREAKS + _DIGITS, b" " * len(_BREAKS) + b"0" * 10))


def sketch_of(text: str, url: str = "") -> str:
    """Return a sketch of a text, by which similarity is estimated; "" for a text without words.

    A sketch consists of the smallest hashes of pairs of words. The URL of the page is removed first, so that error
    pages that quote their URL have equal sketches.
    """
    text = text[:MOST]
    path = "/" + url.partition("://")[2].partition("/")[2]
    for name in (url, path):
        text = text.replace(name, " ") if len(name) > 1 else text
    words = _words_in(text)
    begun = {word: crc32(word + b" ") for word in set(words) if b"0" not in word}  # see `_words_in`
    words = list(filter(begun.__contains__, words))
    hashes = set(map(crc32, words[1:], map(begun.__getitem__, words))) or set(map(crc32, words))
    limit = (3 * SIZE << 32) // (len(hashes) or 1)  # hashes spread evenly, so usually about 3 * SIZE are below
    below = [number for number in hashes if number < limit]
    smallest = sorted(below if len(below) >= SIZE else hashes)[:SIZE]
    return "".join([f"{number:0{WIDTH}x}" for number in smallest])


def _words_in(text: str) -> list[bytes]:
    """Return the words of a text in lower case, some of which the caller still has to drop: those that contain a `0`.

    In a text with few different characters beyond ASCII, a `0` replaces each digit. In others, words with digits are
    already left out.
    """
    beyond = set(beyond_ascii(text))
    if any(each.casefold() != each for each in beyond):
        text = text.casefold()
        beyond = set(beyond_ascii(text))
    if len(beyond) > FEW_OTHERS:
        return [word.encode() for word in _WORD.findall(text.casefold())]
    data = text.encode("utf-8", "surrogatepass")
    for each in beyond:
        if each.isdecimal() or not each.isalnum():
            data = data.replace(each.encode("utf-8", "surrogatepass"), b"0" if each.isdecimal() else b" ")
    return data.translate(_TO_WORDS).split()


def likeness(one: str, other: str) -> float:
    """Return the estimated similarity of two texts, from 0 to 1, given their sketches."""
    first, second = _numbers(one), _numbers(other)
    smallest = sorted(first | second)[:SIZE]
    if not smallest:
        return 1.0
    return len((first & second).intersection(smallest)) / len(smallest)


def _numbers(sketch: str) -> set[str]:
    return {sketch[at : at + WIDTH] for at in range(0, len(sketch), WIDTH)}
