"""Plain word search: texts with all words first, then with any of them, most matches first."""

import re

from afresh.core.model import PageId, SourceId
from afresh.core.query import parse
from afresh.core.stopwords import STOP_WORDS
from afresh.core.views import Hit
from afresh.testing.memory.tables import Piece, Tables

_WORD = re.compile(r"[^\W_]+")


class MemorySearches:
    """Answers to what people type."""

    tables: Tables

    async def search(
        self,
        query: str,
        *,
        source: SourceId | None = None,
        language: str | None = None,
        limit: int = 10,
        every_chunk: bool = False,
    ) -> list[Hit]:
        """The best hits, one per page unless every chunk is wanted; any text is a valid query."""
        words = _words_of(query)
        scored = [
            (_score(piece, words), page, piece)
            for page, pieces in self.tables.pieces.items()
            if self._is_wanted(page, source, language)
            for piece in pieces
        ]
        matches = [each for each in scored if each[0] > 0]
        found = sorted(matches, key=lambda each: (-each[0], self.tables.pages[each[1]].page.depth, each[1]))
        if not every_chunk:
            best = {self._content(each[1]): each for each in reversed(found)}
            found = sorted(best.values(), key=lambda each: -each[0])
        return [self._hit(page, piece, score, words) for score, page, piece in found[:limit]]

    def _content(self, page: PageId) -> tuple[SourceId, str | None]:
        """One page under two addresses is one answer."""
        found = self.tables.pages[page].page
        return found.source_id, found.content_hash

    def _also_at(self, page: PageId) -> tuple[str, ...]:
        rows = self.tables.pages_of(self.tables.pages[page].page.source_id)
        pages = sorted((row.page for row in rows), key=lambda each: (each.depth, each.id))
        return tuple(p.url for p in pages if p.id != page and self._content(p.id) == self._content(page))

    def _is_wanted(self, page: PageId, source: SourceId | None, language: str | None) -> bool:
        found = self.tables.pages[page].page
        spoken = found.language or ""
        fits = language is None or spoken == language or spoken.startswith(f"{language}-")
        return fits and source in (None, found.source_id)

    def _hit(self, page: PageId, piece: Piece, score: float, words: set[str]) -> Hit:
        found = self.tables.pages[page].page
        source = self.tables.sources[found.source_id].source
        return Hit(
            url=found.url,
            title=found.title or found.url,
            text=_marked(piece.text, words) if self.tables.documents[page].markdown is not None else "",
            path=piece.chunk.path,
            score=score,
            source=source.name,
            version=source.version,
            language=found.language,
            checked_at=found.checked_at,
            changed_at=found.changed_at,
            also_at=self._also_at(page)[:5],
        )


def _words_of(query: str) -> set[str]:
    """The words that count: stop words only if there is nothing else."""
    parsed = parse(query)
    words = {
        *parsed.terms,
        *parsed.prefixes,
        *(w for part in (*parsed.phrases, *parsed.compounds) for w in part),
    }
    return {word for word in words if word not in STOP_WORDS} or words


def _score(piece: Piece, words: set[str]) -> float:
    text = f"{piece.title} {' '.join(piece.chunk.path)} {piece.text}"
    found = [word for word in _WORD.findall(text.lower()) if word in words]
    return len(found) * (1.0 if set(found) == words else 0.001)


def _marked(text: str, words: set[str]) -> str:
    return _WORD.sub(lambda m: f"\x02{m[0]}\x03" if m[0].lower() in words else m[0], text)
