"""Measure searches in a large store, without a server: over all sources and within one source.

The texts are chunks of the FastAPI documentation in which every seventh word is replaced by a random one. So no
two texts are the same, and words are about as frequent as in real texts.
"""

import argparse
import asyncio
import json
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from eval.sets import FASTAPI, QuestionSet, load

from afresh.app import one_thread
from afresh.extract.chunk.markdown import chunk
from afresh.model.fetch import Chunk, Document, embedded_text
from afresh.model.records import SourceId
from afresh.models.choose import FAST, builtin
from afresh.ports import Embedder, StoreAccess
from afresh.search.records import SearchFilter, SearchMode, SearchRequest
from afresh.search.search import answer
from afresh.store.open import open_store
from afresh.store.sqlite import add_functions
from afresh.store.store import Store
from afresh.text.normalize import text_hash

SHARED = Path(os.environ.get("AFRESH_SHARED") or Path(__file__).resolve().parents[2] / "shared")
SOURCES = 10
CHUNKS_A_PAGE = 10
NOW = "2026-01-05T09:00:00.000000Z"
PAGE = (
    "insert into pages (id, source_id, url, status, title, language, content_hash, recipe, chunker, "
    "checked_at, changed_at, created_at, updated_at) "
    "values (?, ?, ?, 'active', ?, 'en', ?, '', '', ?, ?, ?, ?)"
)
CHUNK = (
    "insert into chunks (page_id, sort_order, title, heading, content, metadata, config, text_hash, "
    "created_at) values (?, ?, ?, ?, ?, ?, 'english', ?, ?)"
)


def main(arguments: Sequence[str]) -> int:
    """Fill a store, search for every question of the labelled set, and print the times."""
    parser = argparse.ArgumentParser("python -m soak search", description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--store", type=Path, help="create the store here, or use it if it exists")
    given = parser.parse_args(arguments)
    one_thread()
    embedder = builtin(FAST)
    if embedder is None:
        raise AssertionError("the fast model is built in")
    asked = load(FASTAPI, SHARED)
    with tempfile.TemporaryDirectory() as folder:
        file = given.store or Path(folder) / "large.db"
        if not file.exists():
            texts = [page.text for page in asked.pages.values()]
            asyncio.run(_fill(file, texts, given.chunks, embedder))
        print(f"{given.chunks:,} chunks, {file.stat().st_size / 1e6:.0f} MB")
        asyncio.run(_measure(file, asked, embedder))
    return 0


async def _measure(file: Path, found: QuestionSet, embedder: Embedder) -> None:
    questions = [question.query for question in found.questions]
    store = await open_store(f"sqlite:///{file}", StoreAccess.READ)
    began = time.perf_counter()
    await answer(store, SearchRequest(query="the first question reads the vectors"), embedder)
    print(f"first question {time.perf_counter() - began:.2f} s")
    for where, within in (("all", SearchFilter()), ("one source", SearchFilter(sources=(SourceId(3),)))):
        for mode in SearchMode:
            times = [await _time(store, SearchRequest(query=q, within=within, mode=mode), embedder) for q in questions]
            for what, each in zip(("wall", "CPU"), map(sorted, zip(*times, strict=True)), strict=True):
                middle, late = each[len(each) // 2], each[int(0.95 * len(each))]
                print(f"{where:10} {mode:6} {what:4} p50 {middle:5.1f} ms   p95 {late:5.1f} ms")
    await store.close()


async def _time(store: Store, asked: SearchRequest, embedder: Embedder) -> tuple[float, float]:
    """Return the milliseconds that a search takes, and those of CPU."""
    began, used = time.perf_counter(), time.process_time()
    await answer(store, asked, embedder)
    return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used)


async def _fill(file: Path, texts: Sequence[str], number: int, embedder: Embedder) -> None:
    """Create a store with a number of chunks, with their words and vectors."""
    store = await open_store(f"sqlite:///{file}")
    made = list(_noisy(_cut(texts), number))
    for at in range(0, number, 2_000):
        part = made[at : at + 2_000]
        rows = (await embedder.embed([embedded_text(each.path, each.content) for each in part])).astype("<f2")
        kept = {each.text_hash: row.tobytes() for each, row in zip(part, rows, strict=True)}
        await store.vectors.keep(FAST, kept, datetime.now(UTC))
    await store.close()
    with closing(sqlite3.connect(file)) as connection, connection:
        add_functions(connection)
        _insert(connection, made)


def _cut(texts: Sequence[str]) -> list[Chunk]:
    documents = (Document(title="", markdown=text, language="en", content_hash="", links_hash="") for text in texts)
    return [each for document in documents for each in chunk(document)]


def _noisy(chunks: Sequence[Chunk], number: int) -> Iterator[Chunk]:
    """Yield a number of chunks in which every seventh word is random."""
    draw = random.Random(4)
    words = [word for each in chunks for word in each.content.split() if word.isalpha()]
    for at in range(number):
        like = chunks[at % len(chunks)]
        content = " ".join(
            draw.choice(words) if word.isalpha() and draw.random() < 1 / 7 else word for word in like.content.split(" ")
        )
        yield replace(like, content=content, text_hash=text_hash(f"{at} {content}"))


def _insert(connection: sqlite3.Connection, chunks: Sequence[Chunk]) -> None:
    source = "insert into sources (name, kind, url, created_at, updated_at) values (?, 'web', ?, ?, ?)"
    for number in range(SOURCES):
        connection.execute(source, (f"s{number}", f"https://s{number}.example.org/", NOW, NOW))
    for at in range(0, len(chunks), CHUNKS_A_PAGE):
        page = at // CHUNKS_A_PAGE + 1
        url = f"https://s{page % SOURCES}.example.org/p{page}"
        connection.execute(PAGE, (page, page % SOURCES + 1, url, f"Page {page}", str(page), NOW, NOW, NOW, NOW))
        rows = [_row(page, order, each) for order, each in enumerate(chunks[at : at + CHUNKS_A_PAGE])]
        connection.executemany(CHUNK, rows)


def _row(page: int, order: int, each: Chunk) -> tuple[object, ...]:
    metadata = json.dumps({"level": each.level, "path": list(each.path), "types": list(each.types)})
    heading = "\n".join(each.path)
    return page, order, f"Page {page}", heading, each.content, metadata, each.text_hash, NOW
