"""Plain word search: chunks with the most words of a query first."""

import re
from collections.abc import Mapping, Sequence

from afresh.core.asking import Narrowed
from afresh.core.found import Match, Passage
from afresh.core.looks import Chunk
from afresh.core.model import PageId
from afresh.core.query import words_of
from afresh.testing.memory.narrowing import pages_within
from afresh.testing.memory.tables import Piece, Tables

_WORD = re.compile(r"[^\W_]+")


class MemorySearches:
    """Answers to what people type."""

    tables: Tables

    async def matches(self, query: str, within: Narrowed, limit: int) -> list[Match]:
        """The chunks that hold words of a query, the best first; any text is a valid query."""
        words, wanted = set(words_of(query)), pages_within(self.tables, within)
        found = [
            Match(piece.id, score)
            for page, pieces in self.tables.pieces.items()
            if page in wanted
            for piece in pieces
            if (score := _score(piece, words)) > 0
        ]
        return sorted(found, key=lambda each: (-each.score, each.chunk))[:limit]

    async def passages(self, chunks: Sequence[int]) -> list[Passage]:
        """The chunks with their pages, in the order asked for; those that are gone are left out."""
        places = {
            piece.id: (page, order, piece)
            for page, pieces in self.tables.pieces.items()
            for order, piece in enumerate(pieces)
        }
        return [self._passage(*places[chunk]) for chunk in chunks if chunk in places]

    async def page_chunks(self, pages: Sequence[PageId]) -> Mapping[PageId, Sequence[Chunk]]:
        """All chunks of some pages, in the order of their text."""
        return {page: [piece.chunk for piece in self.tables.pieces.get(page, ())] for page in pages}

    def _passage(self, page: PageId, order: int, piece: Piece) -> Passage:
        found = self.tables.pages[page].page
        source = self.tables.sources[found.source_id].source
        return Passage(
            chunk=piece.id,
            page=page,
            order=order,
            content=piece.text if piece.whole else None,
            heading=piece.chunk.path,
            source_id=found.source_id,
            content_hash=found.content_hash or "",
            url=found.url,
            title=found.title or found.url,
            source=source.name,
            version=source.version,
            depth=found.depth,
            language=found.language,
            checked_at=found.checked_at,
            changed_at=found.changed_at,
            also_at=self._also_at(page)[:5],
        )

    def _also_at(self, page: PageId) -> tuple[str, ...]:
        """One page under two addresses is one answer."""
        own = self.tables.pages[page].page
        pages = [row.page for row in self.tables.pages_of(own.source_id)]
        same = [each for each in pages if each.id != page and each.content_hash == own.content_hash]
        return tuple(each.url for each in sorted(same, key=lambda each: (each.depth, each.id)))


def _score(piece: Piece, words: set[str]) -> float:
    text = f"{piece.title} {' '.join(piece.chunk.path)} {piece.text}"
    found = [word for word in _WORD.findall(text.lower()) if word in words]
    return len(found) * (1.0 if set(found) == words else 0.001)
