"""Plain word search: chunks with the most words of a query first."""

from collections.abc import Mapping, Sequence

from afresh.core.analysis import is_run, pairs, search_config, stems, words_in
from afresh.core.asking import Narrowed
from afresh.core.found import Match, Passage
from afresh.core.looks import Chunk
from afresh.core.model import PageId
from afresh.core.query import Query, parse
from afresh.testing.memory.narrowing import pages_within
from afresh.testing.memory.tables import Piece, Tables


class MemorySearches:
    """Answers to what people type."""

    tables: Tables

    async def matches(self, query: str, within: Narrowed, limit: int, *, strict: bool = False) -> list[Match]:
        """The chunks that hold words of a query, the best first; any text is a valid query."""
        wanted = pages_within(self.tables, within)
        asked = parse(query, sorted({self._config(page) for page in self.tables.pieces}))
        found = [
            Match(piece.id, score)
            for page, pieces in self.tables.pieces.items()
            if page in wanted
            for piece in pieces
            if (score := _score(piece, asked, self._config(page))) > 0
            and (not strict or _holds(piece, asked.phrases, self._config(page)))
        ]
        return sorted(found, key=lambda each: (-each.score, each.chunk))[:limit]

    async def scores(self, query: str, chunks: Sequence[int]) -> list[Match]:
        """How well some chunks match that `matches` may have left out because there are too many: none."""
        return []

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

    def _config(self, page: PageId) -> str:
        return search_config(self.tables.pages[page].page.language)

    def _passage(self, page: PageId, order: int, piece: Piece) -> Passage:
        found = self.tables.pages[page].page
        source = self.tables.sources[found.source_id].source
        return Passage(
            chunk=piece.id,
            page=page,
            order=order,
            content=piece.text if piece.whole else None,
            heading=piece.chunk.path if piece.whole else (),
            source_id=found.source_id,
            content_hash=found.content_hash or "",
            url=found.url,
            title=found.title or found.url,
            source=source.name,
            version=source.version,
            depth=found.depth,
            language=found.language,
            checked_at=found.checked_at,
            seen_at=found.last_seen,
            changed_at=found.changed_at,
            also_at=self._also_at(page)[:5],
        )

    def _also_at(self, page: PageId) -> tuple[str, ...]:
        """One page under two addresses is one answer."""
        own = self.tables.pages[page].page
        pages = [row.page for row in self.tables.pages_of(own.source_id)]
        same = [each for each in pages if each.id != page and each.content_hash == own.content_hash]
        return tuple(each.url for each in sorted(same, key=lambda each: (each.depth, each.id)))


def _score(piece: Piece, query: Query, config: str) -> float:
    """How many of the words asked for a text holds, far less if it lacks some."""
    wanted = _words_of(query, config)
    heading = " ".join(piece.chunk.path) if piece.whole else piece.chunk.terms.heading or ""
    text = f"{piece.title} {heading} {piece.text}"
    found = [word for word in _spread(words_in(text), config) if word in wanted]
    return len(found) * (1.0 if set(found) == wanted else 0.001)


def _holds(piece: Piece, phrases: Sequence[tuple[str, ...]], config: str) -> bool:
    """Whether the phrases stand somewhere in a piece, word after word."""
    texts = (piece.title, *piece.chunk.path, piece.text)
    lines = [f" {' '.join(stems(words_in(text), config))} " for text in texts]
    wanted = [f" {' '.join(stems(words, config))} " for words in phrases]
    return all(any(each in line for line in lines) for each in wanted)


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
