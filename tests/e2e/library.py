"""A store for one test: opened through `app.build`, and read again beside the code under test."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afresh.app import build, utc_now
from afresh.config import Config, load
from afresh.core.views import Hit, RunReport
from afresh.kb import KnowledgeBase
from afresh.ports import Clock

QUICK = {
    "network.allow": ["127.0.0.1/32"],
    "policy.backoff_base_seconds": 0.01,
    "policy.backoff_max_seconds": 0.02,
}


def settings(store: Path, flags: Mapping[str, object] | None = None) -> Config:
    """Settings that allow loopback and lose no time on back-off."""
    given = {"store.url": f"sqlite:///{store}", **QUICK, **(flags or {})}
    return load(None, {}, given, store.parent)


@asynccontextmanager
async def opened(
    store: Path, flags: Mapping[str, object] | None = None, *, clock: Clock = utc_now
) -> AsyncIterator[KnowledgeBase]:
    """The knowledge base on a store file, closed afterwards."""
    kb = await build(settings(store, flags), clock=clock)
    try:
        yield kb
    finally:
        await kb.close()


def rows(store: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows of the store, read by a connection of our own."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()


@dataclass(frozen=True)
class Held:
    """What the index holds of one page."""

    title: str
    content_hash: str
    markdown: str | None
    chunks: tuple[str, ...]


def index_of(store: Path, name: str = "docs") -> dict[str, Held]:
    """Everything that can be searched of a source, by address."""
    found = rows(
        store,
        "select p.id, p.url, p.title, p.content_hash, d.markdown from pages p "
        "join sources s on s.id = p.source_id left join documents d on d.page_id = p.id "
        "where s.name = ? and p.content_hash is not null",
        name,
    )
    return {url: Held(title, hashed, text, _chunks(store, page)) for page, url, title, hashed, text in found}


def _chunks(store: Path, page: int) -> tuple[str, ...]:
    found = rows(store, "select content from chunks where page_id = ? order by sort_order", page)
    return tuple(content for (content,) in found)


HALF_PAGES = "select url from pages where content_hash is not null and id not in (select page_id from chunks)"
WRONG_ROWS = (
    "select id from page_crawls where locked_by is not null or locked_at is not null",
    "select domain from hosts where locked_by is not null",
    "select name from workers",
    "select url from pages group by source_id, url having count(*) > 1",
    "select page_id from chunks group by page_id, sort_order having count(*) > 1",
    "select id from chunks where page_id not in (select id from pages where content_hash is not null)",
    HALF_PAGES,
)


def assert_sound(store: Path) -> None:
    """The file is whole, nothing is locked, doubled or half there, and the full-text index agrees."""
    assert rows(store, "pragma integrity_check") == [("ok",)]
    assert rows(store, "pragma foreign_key_check") == []
    for query in WRONG_ROWS:
        assert rows(store, query) == [], query
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        for table in ("chunks_english", "chunks_simple"):
            connection.execute(f"insert into {table} ({table}) values ('integrity-check')")


COUNTED = (
    *("new", "changed", "unchanged", "not_modified", "deleted"),
    *("missing", "moved", "failed", "refused", "held"),
)


def counts(report: RunReport) -> dict[str, int]:
    """The numbers of a report that are not nought, without bytes."""
    return {name: number for name in COUNTED if (number := getattr(report, name))}


async def found(kb: KnowledgeBase, query: str, within: str = "docs") -> set[str]:
    """The addresses that a search brings."""
    hits: list[Hit] = await kb.search(query, within=within, limit=100)
    return {hit.url for hit in hits}
