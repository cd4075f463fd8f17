"""Run a search: find chunks by words and vectors, combine both, and return the best passage of each page."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from afresh.dataclass import replace
from afresh.errors import EmbedError
from afresh.model.records import ListedUrl
from afresh.model.reports import RunReport, SearchAnswer, SearchHit
from afresh.model.versions import is_newer
from afresh.ports import Embedder
from afresh.search.highlight import QueryWords
from afresh.search.query import parse, words_of
from afresh.search.ranking import FAST, FAST_MEANING, LEADERS, MEANING, PULL, fuse, title_bonus
from afresh.search.records import (
    ChunkMatch,
    ChunkVectors,
    FoundPassage,
    SearchMode,
    SearchRequest,
    VectorMatches,
    WordCounts,
)
from afresh.search.relevance import FEW, GOOD, is_calibrated, relevance, share_held, words_held
from afresh.search.snippet import context_of, snippet_of
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.ports import Matrix

CANDIDATES = 100  # chunks from each half
READ = 20  # passages to read at a time: a page may have many of the best chunks
TRIES = 3  # for an answer that no concurrent write disturbs

ScoredPassage = tuple[FoundPassage, float]
NO_QUOTES = str.maketrans('"“”', "   ")  # removes quotes, so that each word counts separately
NO_PHRASE = "no exact match for the quoted phrase"


async def answer(
    store: Store,
    asked: SearchRequest,
    embedder: Embedder | None = None,
    notes: Sequence[str] = (),
    *,
    context: bool = False,
) -> SearchAnswer:
    """Return the best hits for a request; search by keywords only if no vectors can be used."""
    all_notes = list(notes) if asked.mode is not SearchMode.TEXT else []
    if embedder is None and asked.mode is SearchMode.VECTOR and not all_notes:
        all_notes.append("no embeddings to compare: check embedding.provider, or search with --mode text")
    if asked.mode is SearchMode.TEXT or not parse(asked.query):
        embedder = None
    held = await _phrase_matches(store, asked)
    if held is not None and not held:
        shows_others = asked.mode is SearchMode.HYBRID
        all_notes.append(f"{NO_PHRASE}; showing other results" if shows_others else NO_PHRASE)
        asked = replace(asked, query=asked.query.translate(NO_QUOTES) if shows_others else "")
    try:
        passages, near = await _passages(store, asked, embedder, held)
    except EmbedError as error:  # no query vector, or one that cannot be compared
        all_notes.append(f"keyword search only: {error}")
        passages, near = await _passages(store, asked, None, held)
    model = "" if embedder is None else embedder.model
    counted = None if held else await store.search.word_counts(asked.query.translate(NO_QUOTES))
    words = QueryWords(words_of(asked.query))
    weak, displayed = _displayed(passages, counted, near, model, words)
    pages = {passage.page for passage, *_ in displayed} if context else ()
    chunks = await store.search.page_chunks(list(pages)) if pages else {}
    hits = [
        replace(
            passage.hit,
            text=snippet_of(passage.content, words) if passage.content else "",
            score=round(score, 6),
            context=context_of(chunks[passage.page], passage.order) if context and passage.content else None,
            relevance=round(worth, 4),
            weak=weak,
        )
        for passage, score, worth in displayed
    ]
    return SearchAnswer(hits=tuple(hits), notes=tuple(all_notes))


def _displayed(
    passages: Sequence[ScoredPassage], counted: WordCounts | None, near: VectorMatches, model: str, words: QueryWords
) -> tuple[bool, list[tuple[FoundPassage, float, float]]]:
    """Return whether no passage is a good match, and the passages to show, with their scores and relevance.

    Without `counted`, all passages contain the quoted phrases. If none contains a word of the query, only a few are
    shown: those nearest by meaning. Otherwise, those without words and similarity are left out.
    """
    likeness = dict(near.chunks) if is_calibrated(model) else {}
    shares = [1.0 if counted is None else _share(passage, counted, words) for passage, _ in passages]
    found = [
        (passage, score, relevance(share, likeness.get(passage.chunk, near.mean) - near.mean))
        for (passage, score), share in zip(passages, shares, strict=True)
    ]
    weak = max((worth for *_, worth in found), default=0.0) < GOOD
    if weak and not any(shares):
        return True, [each for each in found if each[1] > 0.0][:FEW]
    return weak, [each for each in found if each[2] > 0.0 or (each[1] > 0.0 and not likeness)]


def _share(passage: FoundPassage, counted: WordCounts, words: QueryWords) -> float:
    known = [word for word, count in counted.counts.items() if count]
    if passage.content is None:  # not stored, so it cannot be read again
        return share_held(counted, known)
    texts = "\n".join((passage.hit.title, *passage.hit.path)), passage.content.strip("\n")  # as in a snippet
    return share_held(counted, words_held(known, texts, passage.hit.language, words))


def older_pages(hits: Sequence[SearchHit], since: datetime) -> dict[str, list[ListedUrl]]:
    """Return the pages of hits whose content was last confirmed before `since`, by the label of their source."""
    old: dict[str, list[ListedUrl]] = {}
    for hit in hits:
        if hit.seen_at is None or hit.seen_at < since:
            label = f"{hit.source}@{hit.version}" if hit.version else hit.source
            old.setdefault(label, []).append(ListedUrl(hit.url, hit.depth))
    return old


def notes_on_check(label: str, report: RunReport) -> list[str]:
    notes = [f"{label}, checked again: {report.error}"] if report.error else []
    if report.held:
        gone = "1 page is gone" if report.held == 1 else f"{report.held} pages are gone"
        notes.append(f"{label}: {gone}, but kept until `afresh confirm {report.run}`")
    return notes


async def _phrase_matches(store: Store, asked: SearchRequest) -> Sequence[ChunkMatch] | None:
    """Return the chunks that contain the quoted phrases; None if nothing is quoted or the search ignores words."""
    if asked.mode is SearchMode.VECTOR or not parse(asked.query).phrases:
        return None
    return await store.search.matches(asked.query, asked.within, _width(asked), strict=True)


async def _rank(
    store: Store, asked: SearchRequest, embedder: Embedder | None, held: Sequence[ChunkMatch] | None
) -> tuple[Sequence[ChunkMatch], VectorMatches]:
    """Return the chunks, best first, and how similar they are to the query."""
    if held and embedder is not None:
        vector = await embedder.embed_query(asked.query)
        vectors = await store.vectors.of_chunks(embedder.model, [match.chunk for match in held])
        near = vectors.likeness(vector)
        return fuse(held, near), near
    if held:
        return held, VectorMatches()
    if embedder is None:
        words = asked.mode is not SearchMode.VECTOR
        found = await store.search.matches(asked.query, asked.within, _width(asked)) if words else ()
        return found, VectorMatches()
    if asked.mode is SearchMode.VECTOR:
        vector, vectors = await _nearest(store, asked, embedder)
        near = vectors.likeness(vector)
        return near.chunks, near
    return await _fused(store, asked, embedder)


async def _fused(store: Store, asked: SearchRequest, embedder: Embedder) -> tuple[Sequence[ChunkMatch], VectorMatches]:
    """Return matches by words and vectors, ranked twice: the second time with the query moved to the best chunks."""

    async def scored_nearest() -> tuple["Matrix", ChunkVectors, Sequence[ChunkMatch]]:
        vector, near = await _nearest(store, asked, embedder)
        return vector, near, await store.search.scores(asked.query, near.chunks)

    found, (vector, near, scored) = await asyncio.gather(
        store.search.matches(asked.query, asked.within, _width(asked)), scored_nearest()
    )
    matches, model = [*found, *scored], embedder.model
    others = {match.chunk for match in found}.difference(near.chunks)
    vectors = near.plus(await store.vectors.of_chunks(model, list(others)))
    meaning = FAST_MEANING if model.startswith(FAST) else MEANING
    likeness = vectors.likeness(vector)
    first = fuse(matches, likeness, meaning)
    middle = vectors.mean_of({match.chunk for match in first[:LEADERS]})
    if middle is None:
        return first, likeness
    return fuse(matches, vectors.likeness(_move_towards(vector, middle)), meaning), likeness


async def _nearest(store: Store, asked: SearchRequest, embedder: Embedder) -> tuple["Matrix", ChunkVectors]:
    vector = await embedder.embed_query(asked.query)
    return vector, await store.vectors.nearest(embedder.model, vector, asked.within, _width(asked))


def _move_towards(vector: "Matrix", middle: "Matrix") -> "Matrix":
    moved = vector + PULL * middle / _length(middle)
    return cast("Matrix", moved / _length(moved))


def _length(vector: "Matrix") -> float:
    return float((vector @ vector.T)[0, 0]) ** 0.5 or 1.0


def _width(asked: SearchRequest) -> int:
    return max(CANDIDATES, 5 * asked.limit)


async def _passages(
    store: Store, asked: SearchRequest, embedder: Embedder | None, held: Sequence[ChunkMatch] | None
) -> tuple[list[ScoredPassage], VectorMatches]:
    """Return the passages and similarities; rank again if a page was chunked again between ranking and reading.

    `held` are the chunks that contain the quoted phrases. If there is at least one, only the chunks in `held` are
    ranked; if `held` is empty or None, all chunks are searched.
    """
    for _ in range(TRIES):
        ranked, near = await _rank(store, asked, embedder, held)
        found, all_there = await _best_of_each_page(store, ranked, asked)
        if all_there:
            break
        held = await _phrase_matches(store, asked)
    return found, near


async def _best_of_each_page(
    store: Store, ranked: Sequence[ChunkMatch], asked: SearchRequest
) -> tuple[list[ScoredPassage], bool]:
    """Return the best passage of each page (with `every_chunk`, all), and whether all ranked chunks still exist."""
    words, all_there = words_of(asked.query), True
    best: dict[object, ScoredPassage] = {}
    for start in range(0, len(ranked), READ):
        scores = {match.chunk: match.score for match in ranked[start : start + READ]}
        passages = await store.search.passages(list(scores))
        all_there = all_there and len(passages) == len(scores)
        for passage in passages:
            scored = (passage, scores[passage.chunk] + title_bonus(passage.hit.title, words))
            library = passage.hit.source.partition("/")[0]
            key = passage.chunk if asked.every_chunk else (library, passage.content_hash)
            best[key] = _better(best[key], scored) if key in best else scored
        if len(best) >= asked.limit:
            break
    return sorted(best.values(), key=lambda scored: -scored[1])[: asked.limit], all_there


def _better(one: ScoredPassage, other: ScoredPassage) -> ScoredPassage:
    """Return the better of two passages with the same content; of two versions of a source, prefer the newer one."""
    if one[0].source_id == other[0].source_id:
        return max(one, other, key=lambda scored: scored[1])
    newer = other if is_newer(other[0].hit.version, one[0].hit.version) else one
    return newer[0], max(one[1], other[1])
