"""Plain word search: texts with all words first, then with any of them, most matches first."""

from afresh.core.analysis import is_run, pairs, search_config, stems, words_in
from afresh.core.model import PageId, SourceId
from afresh.core.passages import passage
from afresh.core.query import Query, parse
from afresh.core.views import Hit
from afresh.testing.memory.tables import Piece, Tables


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
        asked = parse(query, sorted({self._config(page) for page in self.tables.pieces}))
        scored = [
            (_score(piece, asked, self._config(page)), page, piece)
            for page, pieces in self.tables.pieces.items()
            if self._is_wanted(page, source, language)
            for piece in pieces
        ]
        matches = [each for each in scored if each[0] > 0]
        found = sorted(matches, key=lambda each: (-each[0], self.tables.pages[each[1]].page.depth, each[1]))
        if not every_chunk:
            best = {self._content(each[1]): each for each in reversed(found)}
            found = sorted(best.values(), key=lambda each: -each[0])
        return [self._hit(page, piece, score, asked) for score, page, piece in found[:limit]]

    def _config(self, page: PageId) -> str:
        return search_config(self.tables.pages[page].page.language)

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

    def _is_kept(self, page: PageId) -> bool:
        return self.tables.documents[page].markdown is not None

    def _hit(self, page: PageId, piece: Piece, score: float, query: Query) -> Hit:
        found = self.tables.pages[page].page
        source = self.tables.sources[found.source_id].source
        return Hit(
            url=found.url,
            title=found.title or found.url,
            text=passage(piece.text, query, self._config(page)) if self._is_kept(page) else "",
            path=piece.chunk.path,
            score=score,
            source=source.name,
            version=source.version,
            language=found.language,
            checked_at=found.checked_at,
            changed_at=found.changed_at,
            also_at=self._also_at(page)[:5],
        )


def _score(piece: Piece, query: Query, config: str) -> float:
    """How many of the words asked for a text holds, far less if it lacks some."""
    wanted = _words_of(query, config)
    text = f"{piece.title} {' '.join(piece.chunk.path)} {piece.text}"
    found = [word for word in _spread(words_in(text), config) if word in wanted]
    return len(found) * (1.0 if set(found) == wanted else 0.001)


def _words_of(query: Query, config: str) -> set[str]:
    """The words that count as a configuration keeps them: stop words only if there is nothing else."""
    parts = [word for part in (*query.phrases, *query.compounds) for word in part]
    words = {*query.terms, *query.prefixes, *query.runs, *parts}
    telling = words - query.stop or words
    runs = {pair for word in telling if is_run(word) for pair in pairs(word)[:-1] or [word]}
    return runs.union(stems([word for word in telling if not is_run(word)], config))


def _spread(words: list[str], config: str) -> list[str]:
    """The words of a text as a configuration keeps them, runs as their pairs and their characters."""
    runs = [part for word in words if is_run(word) for part in (*pairs(word)[:-1], *word)]
    return runs + stems([word for word in words if not is_run(word)], config)
