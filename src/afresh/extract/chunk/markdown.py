"""Cuts a Markdown document into chunks along its structure."""

from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING
from zlib import crc32

from afresh.extract.chunk.packing import pack
from afresh.extract.chunk.pieces import Piece, Trail, pieces_of
from afresh.model import recipe
from afresh.model.fetch import Chunk, Document, embedded_text
from afresh.search.stemming import search_config
from afresh.text.link_targets import Pointing
from afresh.text.normalize import text_hash, with_terms

if TYPE_CHECKING:
    from afresh.ports import Chunker

_TYPES = ("text", "code", "table", "list")


class MarkdownChunker:
    """Keeps sections, code and table rows whole where they fit, and its borders where nothing changed."""

    version = recipe.CHUNKER

    def chunk(self, document: Document) -> Sequence[Chunk]:
        """Cuts a document into chunks of about 800 to 2000 characters, link targets aside, in its order."""
        text = Pointing(_readable(document.markdown))
        pieces = pieces_of(text.short)
        sizes = [len(piece.text) for piece in pieces]
        at = [0, *accumulate(sizes)]
        chunks = [
            _chunk(pieces, low, high, text.between(at[low], at[high]))
            for low, high in pack(sizes, _keys(pieces))
        ]
        return [chunk for chunk in chunks if chunk.content]


def chunk(document: Document) -> Sequence[Chunk]:
    """The chunks of a document, with the words by which its language is searched."""
    chunker: Chunker = MarkdownChunker()
    config = search_config(document.language)
    return [with_terms(chunk, config) for chunk in chunker.chunk(document)]


def _readable(text: str) -> str:
    """The text with plain line ends and without halves of surrogate pairs, which have no UTF-8."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _keys(pieces: Sequence[Piece]) -> list[int]:
    """How good a place for a cut is: first its rank, then a mark drawn from the words that follow it."""
    keys = []
    before = ""
    for index, piece in enumerate(pieces):
        words = piece.text[:48]
        if piece.heading and index + 1 < len(pieces):
            words += pieces[index + 1].text[:32]  # "Example" may be the title of many sections
        introduced = not piece.heading and before.endswith(":")
        keys.append((piece.rank + introduced) << 32 | crc32(words.encode()))
        before = piece.text[-8:].rstrip()
    return keys


def _chunk(pieces: Sequence[Piece], low: int, high: int, text: str) -> Chunk:
    inside = pieces[low:high]
    trail = _common_trail(inside)
    path = tuple(title for _, title in trail)
    content = _content(inside[0].reopen + text, pieces[high].close if high < len(pieces) else "")
    return Chunk(
        content=content,
        path=path,
        level=trail[-1][0] if trail else 0,
        types=_types(inside),
        text_hash=text_hash(embedded_text(path, content)),
    )


def _content(content: str, close: str) -> str:
    if close:
        content += close if content.endswith("\n") else "\n" + close
    return content.rstrip().lstrip("\n")


def _common_trail(inside: Sequence[Piece]) -> Trail:
    """The headings above everything in the chunk; a heading without a text of its own does not count."""
    trails = [piece.trail for piece in inside if not piece.heading] or [piece.trail for piece in inside]
    common = trails[0]
    for trail in trails:
        if trail is not common:
            common = _shared(common, trail)
    return common


def _shared(one: Trail, other: Trail) -> Trail:
    same = takewhile(lambda steps: steps[0] == steps[1], zip(one, other, strict=False))
    return tuple(step for step, _ in same)


def _types(inside: Sequence[Piece]) -> tuple[str, ...]:
    kinds = {piece.kind for piece in inside if not piece.heading}
    if "list" in kinds and any("```" in piece.text for piece in inside if piece.kind == "list"):
        kinds.add("code")
    return tuple(kind for kind in _TYPES if kind in kinds) or ("text",)
