"""Leading a search: ask both halves of the index, fuse what they find, show the best passage of each page."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

from afresh.errors import EmbedError
from afresh.model.records import Listed
from afresh.model.reports import Answer, Hit, RunReport
from afresh.model.versions import is_newer
from afresh.ports import Embedder
from afresh.search.highlight import Words
from afresh.search.query import parse, unquoted, words_of
from afresh.search.ranking import LEADERS, PULL, fuse, meaning_of, title_bonus
from afresh.search.request import Asked, Mode
from afresh.search.results import Match, Nearest, Passage
from afresh.search.snippet import context as context_of
from afresh.search.snippet import passage as passage_of
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.ports import Matrix

CANDIDATES = 100  # chunks that each half hands in
READ = 20  # passages that are read at a time: a page may own many of the best chunks
TRIES = 3  # for an answer that is not disturbed by what is written meanwhile


Shown = tuple[Passage, float]  # with its score


async def answer(
    store: Store,
    asked: Asked,
    embedder: Embedder | None = None,
    notes: Sequence[str] = (),
    *,
    context: bool = False,
) -> Answer:
    """The best hits for a question; where meanings cannot be asked, by its words alone."""
    said = list(notes) if asked.mode is not Mode.TEXT else []
    if embedder is None and asked.mode is Mode.VECTOR and not said:
        said.append("there are no vectors to compare: see embedding.provider, or ask with --mode text")
    if asked.mode is Mode.TEXT or not parse(asked.query):
        embedder = None
    held = await _held(store, asked)
    if held is not None and not held:
        said.append("no text holds the words in quotes as they stand")
        asked = replace(asked, query=unquoted(asked.query) if asked.mode is Mode.HYBRID else "")
    preparing = asyncio.to_thread(Words, words_of(asked.query))  # while the index is asked
    try:
        passages, words = await asyncio.gather(_passages(store, asked, embedder, held), preparing)
    except EmbedError as error:  # no vector of the question, or one that cannot be compared
        said.append(f"answered by words alone: {error}")
        passages, words = await _passages(store, asked, None, held), Words(words_of(asked.query))
    hits = [_hit(passage, score, words) for passage, score in passages]
    if context:
        hits = await _with_context(store, passages, hits)
    return Answer(hits=tuple(hits), notes=tuple(said))


def older_pages(hits: Sequence[Hit], since: datetime) -> dict[str, list[Listed]]:
    """The pages of hits that last answered before a time, by the label of their source."""
    old: dict[str, list[Listed]] = {}
    for hit in hits:
        if hit.seen_at is None or hit.seen_at < since:
            label = f"{hit.source}@{hit.version}" if hit.version else hit.source
            old.setdefault(label, []).append(Listed(hit.url, hit.depth))
    return old


def told_of_check(label: str, report: RunReport) -> list[str]:
    """What a look at found pages showed that the answer alone does not."""
    notes = [f"{label}, looked at again: {report.error}"] if report.error else []
    if report.held:
        gone = "1 page is gone" if report.held == 1 else f"{report.held} pages are gone"
        notes.append(f"{label}: {gone}, but kept until `afresh confirm {report.run}`")
    return notes


async def _held(store: Store, asked: Asked) -> Sequence[Match] | None:
    """The chunks that hold what is in quotes; None if nothing is, or words do not count."""
    if asked.mode is Mode.VECTOR or not parse(asked.query).phrases:
        return None
    return await store.search.matches(asked.query, asked.within, _width(asked), strict=True)


async def _ranked(
    store: Store, asked: Asked, embedder: Embedder | None, held: Sequence[Match] | None
) -> Sequence[Match]:
    if held:
        return held if embedder is None else await _fused_with_held(store, asked, embedder, held)
    if embedder is None:
        words = asked.mode is not Mode.VECTOR
        return await store.search.matches(asked.query, asked.within, _width(asked)) if words else ()
    if asked.mode is Mode.VECTOR:
        _, nearest = await _nearest(store, asked, embedder)
        return [Match(near.chunk, near.likeness) for near in nearest.chunks]
    return await _fused(store, asked, embedder)


async def _fused_with_held(
    store: Store, asked: Asked, embedder: Embedder, held: Sequence[Match]
) -> Sequence[Match]:
    vector = await embedder.embed_query(asked.query)
    return fuse(held, await store.vectors.likeness(embedder.model, vector, [match.chunk for match in held]))


async def _fused(store: Store, asked: Asked, embedder: Embedder) -> Sequence[Match]:
    """Both halves together, twice: the first order tells the second what else the question may mean."""
    found, (vector, near, scored) = await asyncio.gather(
        store.search.matches(asked.query, asked.within, _width(asked)), _near(store, asked, embedder)
    )
    matches, model = [*found, *scored], embedder.model
    candidates = list({match.chunk for match in found} | {each.chunk for each in near.chunks})
    meaning = meaning_of(model)
    first = fuse(matches, await store.vectors.likeness(model, vector, candidates), meaning)
    leaders = await store.vectors.of_chunks(model, [match.chunk for match in first[:LEADERS]])
    if not len(leaders):
        return first
    return fuse(matches, await store.vectors.likeness(model, _moved(vector, leaders), candidates), meaning)


async def _near(store: Store, asked: Asked, embedder: Embedder) -> tuple["Matrix", Nearest, Sequence[Match]]:
    """The nearest chunks, and how well they match: there may be too many matches to find them that way."""
    vector, near = await _nearest(store, asked, embedder)
    return vector, near, await store.search.scores(asked.query, [each.chunk for each in near.chunks])


async def _nearest(store: Store, asked: Asked, embedder: Embedder) -> tuple["Matrix", Nearest]:
    vector = await embedder.embed_query(asked.query)
    return vector, await store.vectors.nearest(embedder.model, vector, asked.within, _width(asked))


def _moved(vector: "Matrix", leaders: "Matrix") -> "Matrix":
    """The question, moved towards what answers it best."""
    middle = leaders.mean(axis=0, keepdims=True)
    moved = vector + PULL * middle / _length(middle)
    return cast("Matrix", moved / _length(moved))


def _length(vector: "Matrix") -> float:
    return float((vector @ vector.T)[0, 0]) ** 0.5 or 1.0


def _width(asked: Asked) -> int:
    return max(CANDIDATES, 5 * asked.limit)


async def _passages(
    store: Store, asked: Asked, embedder: Embedder | None, held: Sequence[Match] | None
) -> list[Shown]:
    """What is shown; asked for again where a page was cut anew between the ranking and the reading."""
    for _ in range(TRIES):
        ranked = await _ranked(store, asked, embedder, held)
        found, all_there = await _best_of_each_page(store, ranked, asked)
        if all_there:
            break
        held = await _held(store, asked)
    return found


async def _best_of_each_page(store: Store, ranked: Sequence[Match], asked: Asked) -> tuple[list[Shown], bool]:
    """The best passage of each page, or every one if asked for, and whether all that was ranked is there."""
    words, all_there = words_of(asked.query), True
    best: dict[object, Shown] = {}
    for start in range(0, len(ranked), READ):
        scores = {match.chunk: match.score for match in ranked[start : start + READ]}
        passages = await store.search.passages(list(scores))
        all_there = all_there and len(passages) == len(scores)
        for passage in passages:
            shown = (passage, scores[passage.chunk] + title_bonus(passage.title, words))
            library = passage.source.partition("/")[0]
            key = passage.chunk if asked.every_chunk else (library, passage.content_hash)
            best[key] = _better(best[key], shown) if key in best else shown
        if len(best) >= asked.limit:
            break
    return sorted(best.values(), key=lambda shown: -shown[1])[: asked.limit], all_there


def _better(one: Shown, other: Shown) -> Shown:
    """Of two passages with one content the better; of the same in two versions the newer."""
    if one[0].source_id == other[0].source_id:
        return max(one, other, key=lambda shown: shown[1])
    newer = other if is_newer(other[0].version, one[0].version) else one
    return newer[0], max(one[1], other[1])


async def _with_context(store: Store, passages: Sequence[Shown], hits: Sequence[Hit]) -> list[Hit]:
    """The hits with what stands around them."""
    chunks = await store.search.page_chunks(list({passage.page for passage, _ in passages}))
    return [
        replace(hit, context=context_of(chunks[passage.page], passage.order) if passage.content else None)
        for hit, (passage, _) in zip(hits, passages, strict=True)
    ]


def _hit(passage: Passage, score: float, words: Words) -> Hit:
    return Hit(
        url=passage.url,
        title=passage.title,
        text=passage_of(passage.content, words) if passage.content else "",
        path=passage.heading,
        score=round(score, 6),
        source=passage.source,
        version=passage.version,
        language=passage.language,
        checked_at=passage.checked_at,
        seen_at=passage.seen_at,
        changed_at=passage.changed_at,
        also_at=passage.also_at,
        depth=passage.depth,
    )
