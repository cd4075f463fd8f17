"""Full-text search in the store; the number of scored chunks is limited."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar, NamedTuple

from afresh.aio import yield_in_turns
from afresh.dataclass import dataclass, field
from afresh.model.fetch import Chunk
from afresh.model.records import PageId
from afresh.model.reports import SearchHit
from afresh.search.query import ROOM, Query, alternatives, expressions, parse, phrases_of, scoring, single_words
from afresh.search.records import ChunkMatch, FoundPassage, SearchFilter, WordCounts
from afresh.search.stemming import ENGLISH, SIMPLE, search_config
from afresh.store.dialect import Row, Transaction
from afresh.store.records import record, times_of
from afresh.store.repository import Repository
from afresh.urls.scope import address_filter

SMALL_SUBSET = 3_000  # chunks; every match in it is scored
MAX_ROOM = 3 * ROOM  # matching texts in the whole index, if only those in a subset are scored
MAX_COUNTS = 10_000
MAX_MAP_BYTES = 5_000_000
MAX_OTHER_URLS = 5  # with the same content


@dataclass(frozen=True, slots=True)
class IndexSubset:
    """The part of the index to search, all if `pages` is None; `chunk_mask` has a byte for each chunk: 1 if inside."""

    pages: Sequence[int] | None = None
    chunks: int = 0  # number of chunks in the subset
    all_chunks: int = 0  # upper bound of the number of chunks in the whole index
    chunk_mask: bytes | None = None

    @property
    def max_matches(self) -> int:
        """Return how many texts of the whole index a search may match; more if only a small subset is scored."""
        if self.pages is None:
            return ROOM
        return min(MAX_ROOM, ROOM * max(1, self.all_chunks // max(1, self.chunks)))

    @property
    def query(self) -> tuple[str, dict[str, object]]:
        """Return the prefix of the name of the search statement for this subset, and its parameters."""
        if self.chunk_mask is not None:
            return "match_inside", {"inside": self.chunk_mask}
        return ("match", {}) if self.pages is None else ("match_within", {"pages": self.pages})


class MatchCount(NamedTuple):
    """The number of texts that match an expression, counted up to `most`."""

    number: int
    most: int

    def is_exact_to(self, most: int) -> bool:
        return self.number < self.most or most <= self.most


@dataclass(frozen=True, slots=True)
class IndexStats:
    """Facts about the full-text index, cached until chunks are added."""

    newest_chunk: int = 0  # its id
    configs: tuple[str, ...] = ()  # language configurations of the indexed texts
    match_counts: dict[tuple[str, str], MatchCount] = field(default_factory=dict)  # by table and expression
    subsets: dict[SearchFilter, IndexSubset] = field(default_factory=dict)  # for filters that name only sources
    text_count: int = 0  # approximate number of texts, for indexes that do not provide it

    def queries(self, query: str, language: str | None) -> Iterator[tuple[str, list[str], Query, Sequence[str]]]:
        """Yield for each table to search: its name and language configurations, the parsed query and FTS5 expressions.

        With `language`, only its configuration and `simple` are searched; older versions used `simple` for all pages.
        """
        found = list(self.configs)
        if language is not None:  # older versions of afresh indexed all pages as simple
            found = [config for config in found if config in (search_config(language), SIMPLE)]
        english, simple = ([each for each in found if (each == ENGLISH) is wanted] for wanted in (True, False))
        parsed = parse(query, (*english, *simple))
        for table, own in (("english", english), ("simple", simple)):
            if own and (asked := alternatives(parsed, own)):
                yield table, own, parsed, asked

    def counts_of(self, query: str) -> dict[str, int] | None:
        """Return how many texts contain each word of a query; None if not all are counted yet."""
        found: dict[str, int] = {}
        for table, own, parsed, _ in self.queries(query, None):
            for word, expression in single_words(parsed, own).items():
                if (table, expression) not in self.match_counts:
                    return None
                found[word] = found.get(word, 0) + self.match_counts[table, expression].number
        return found


@dataclass(frozen=True, slots=True)
class FtsTable:
    tx: Transaction
    name: str
    subset: IndexSubset
    known: IndexStats

    @property
    def bound_by(self) -> int:
        """Return an upper bound of the number of texts, to compute the highest possible score; 0 if there is none."""
        return self.known.newest_chunk

    async def best(self, alternatives: Sequence[str], limit: int) -> list[ChunkMatch]:
        """Return the highest-scoring chunks that match any of the FTS5 expressions `alternatives`."""
        if self.subset.pages is not None and self.subset.chunks <= SMALL_SUBSET:  # few enough to score all
            return await self._scored([" OR ".join(alternatives)], alternatives, limit)
        most = self.subset.max_matches
        counts = dict(zip(alternatives, await self._counts(alternatives, 2 * most), strict=True))
        plan = scoring(counts, most, texts=self.bound_by)
        steps = await self._counts(plan.steps, most + 1)
        return await self._scored(expressions(plan, steps, most), alternatives, limit, plan.rest)

    async def scores(self, alternatives: Sequence[str], chunks: Sequence[int]) -> list[ChunkMatch]:
        """Return the scores of `chunks`, ignoring frequent words; none if `best` already scores all matching chunks."""
        counts = dict(zip(alternatives, await self._counts(alternatives, 2 * ROOM), strict=True))
        if scoring(counts).whole:
            return []
        summaries = [each for each in alternatives if counts[each] < 2 * ROOM] or alternatives
        asked = {"match": " OR ".join(summaries), "chunks": list(chunks)}
        [rows] = await self.find(f"score_{self.name}", [asked], summaries)
        return _matches(rows)

    async def exact(self, must: str, alternatives: Sequence[str], limit: int) -> list[ChunkMatch]:
        """Return the best of the chunks that contain the phrases in `must`; all such chunks are scored."""
        return await self._scored([f"({must}) AND ({' OR '.join(alternatives)})"], alternatives, limit)

    async def find(
        self, statement: str, asked: Sequence[Mapping[str, object]], among: Sequence[str]
    ) -> Sequence[Sequence[Row]]:
        """Run a search statement for each set of parameters and return the rows; only PostgreSQL needs `among`."""
        del among  # SQLite weights the words itself
        return await self.tx.each(statement, asked)

    async def count(self, expressions: Sequence[str]) -> None:
        """Cache how many texts match each expression."""
        await self._counts(expressions, 2 * ROOM)

    async def _scored(
        self, expressions: Sequence[str], alternatives: Sequence[str], limit: int, rest: float = inf
    ) -> list[ChunkMatch]:
        """Return the best chunks that match any expression, each with its highest score.

        `alternatives` are the words and phrases that the expressions combine; if the database does not weight words
        itself, `find` weights these. `rest` is the highest possible score of a chunk that the first expression does
        not find. Once `limit` chunks have at least this score, the later expressions are skipped.
        """
        name, where = self.subset.query
        best: dict[int, float] = {}
        for each in expressions:
            if len(best) >= limit and min(best.values()) >= rest:
                break
            asked = {"match": each, "limit": limit, **where}
            [rows] = await self.find(f"{name}_{self.name}", [asked], alternatives)
            for chunk, score in _matches(rows):
                best[chunk] = max(score, best.get(chunk, score))
        return [ChunkMatch(chunk, score) for chunk, score in best.items()]

    async def _counts(self, expressions: Sequence[str], most: int) -> list[int]:
        """Return how many texts match each expression, counted up to `most`."""
        unknown = [each for each in expressions if not self._count(each).is_exact_to(most)]
        asked = [{"match": each, "most": most} for each in unknown]
        for each, rows in zip(unknown, await self.find(f"count_{self.name}", asked, ()), strict=True):
            self.known.match_counts[self.name, each] = MatchCount(rows[0]["number"], most)
        return [min(self._count(each).number, most) for each in expressions]

    def _count(self, expression: str) -> MatchCount:
        return self.known.match_counts.get((self.name, expression), MatchCount(0, 0))


def _matches(rows: Sequence[Row]) -> list[ChunkMatch]:
    return [ChunkMatch(row["chunk"], -row["score"]) for row in rows]


class SearchRepository(Repository):
    table: ClassVar[type[FtsTable]] = FtsTable

    async def matches(self, query: str, within: SearchFilter, limit: int, *, strict: bool = False) -> list[ChunkMatch]:
        """Return the best chunks for a query, best first; if strict, quoted phrases must match exactly."""
        found: list[ChunkMatch] = []
        async with self.db.read() as tx:
            known = await self._renewed_known(tx)
            subset = await self._subset(tx, within, known)
            for table, own, parsed, asked in known.queries(query, within.language):
                must = phrases_of(parsed, own) if strict else None
                index = self.table(tx, table, subset, known)
                found += await (index.exact(must, asked, limit) if must else index.best(asked, limit))
        return sorted(found, key=lambda each: (-each.score, each.chunk))[:limit]

    async def scores(self, query: str, chunks: Sequence[int]) -> list[ChunkMatch]:
        """Return the scores of `chunks`, ignoring frequent words; none if `matches` already scores all matches."""
        found: list[ChunkMatch] = []
        async with self.db.read() as tx:
            known = self.caches.known or await self._renewed_known(tx)
            for table, _, _, asked in known.queries(query, None) if chunks else ():
                found += await self.table(tx, table, IndexSubset(), known).scores(asked, chunks)
        return found

    async def word_counts(self, query: str) -> WordCounts:
        """Return how many texts contain each word of a query; after `matches`, this needs no transaction."""
        known = self.caches.known
        counts = known.counts_of(query) if known else None
        if known is None or counts is None:
            async with self.db.read() as tx:
                known = await self._renewed_known(tx)
                for table, own, parsed, _ in known.queries(query, None):
                    await self.table(tx, table, IndexSubset(), known).count(list(single_words(parsed, own).values()))
            counts = known.counts_of(query) or {}
        return WordCounts(counts, max(known.text_count or known.newest_chunk, *counts.values(), 0))

    async def _subset(self, tx: Transaction, within: SearchFilter, known: IndexStats) -> IndexSubset:
        """Return the part of the index that a filter selects; cache it if the filter names only sources."""
        if not within:
            return IndexSubset()
        if within in known.subsets:
            return known.subsets[within]
        pages = [row["id"] for row in await pages_within(tx, within)]
        number, inside = await tx.number("count_chunks", pages=pages), None
        if known.newest_chunk <= MAX_MAP_BYTES and (2 * number <= known.newest_chunk or not within.by_page):
            places = bytearray(known.newest_chunk)  # index 0 is chunk 1
            for row in await tx.all("chunks_within", pages=pages):
                places[row["id"] - 1] = 1
            inside = bytes(places)
        subset = IndexSubset(pages, number, known.newest_chunk, inside)
        if not within.by_page:
            known.subsets[within] = subset
        return subset

    async def _renewed_known(self, tx: Transaction) -> IndexStats:
        """Return the cached facts about the index, after reading them again if chunks were added."""
        newest = await tx.number("newest")
        known = self.caches.known
        if known is None or newest != known.newest_chunk or len(known.match_counts) > MAX_COUNTS:
            configs = [str(each["config"]) for each in await tx.all("configs")]
            known = self.caches.known = IndexStats(newest, tuple(configs))
        return known

    async def passages(self, chunks: Sequence[int]) -> list[FoundPassage]:
        """Return chunks with their pages in the given order, omitting deleted chunks."""
        async with self.db.read() as tx:
            rows = {row["chunk"]: row for row in await tx.all("chunk_pages", chunks=list(chunks))}
            hashes = list({row["content_hash"] for row in rows.values()})
            addresses: dict[tuple[int, str], list[str]] = defaultdict(list)
            for row in await tx.all("same_content", hashes=hashes):
                addresses[row["source_id"], row["content_hash"]].append(row["url"])
        return [_passage(rows[chunk], addresses) for chunk in chunks if chunk in rows]

    async def page_chunks(self, pages: Sequence[PageId]) -> Mapping[PageId, Sequence[Chunk]]:
        found: dict[PageId, list[Chunk]] = {page: [] for page in pages}
        for row in await self._all("page_chunks", pages=list(pages)):
            found[PageId(row["page_id"])].append(chunk_from(row))
        return found


def chunk_from(row: Row) -> Chunk:
    metadata = json.loads(row["metadata"])
    where = {"path": tuple(metadata["path"]), "level": metadata["level"], "types": tuple(metadata["types"])}
    return Chunk(content=row["content"], text_hash=row["text_hash"], **where)


def _passage(row: Row, addresses: Mapping[tuple[int, str], Sequence[str]]) -> FoundPassage:
    others = [url for url in addresses[row["source_id"], row["content_hash"]] if url != row["url"]]
    _, seen_at, checked_at = times_of(row)
    own = {"path": tuple(json.loads(row["metadata"])["path"]), "also_at": tuple(others[:MAX_OTHER_URLS])}
    found = {"text": "", "score": 0.0, "context": None, "relevance": 0.0, "weak": False}
    times = {"checked_at": checked_at, "seen_at": seen_at}
    return record(FoundPassage, row, hit=record(SearchHit, row, **found, **times, **own))


async def pages_within(tx: Transaction, within: SearchFilter) -> Sequence[Row]:
    if within.sources is not None and not within.by_page:  # covered by an index
        return await tx.all("pages_of", sources=list(within.sources))
    asked = {name: getattr(within, name) for name in ("language", "changed_after", "checked_after")}
    rows = await tx.all("pages_within", sources=None if within.sources is None else list(within.sources), **asked)
    if within.path is None:
        return rows
    matches = address_filter(within.path)
    return [row async for row in yield_in_turns(rows, lambda row: str(row["url"])) if matches(row["url"])]
