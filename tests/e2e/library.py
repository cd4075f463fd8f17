"""A store for one test: opened through `app.build`, and read again beside the code under test."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import state
from tests.fakes.state import Held

from afresh.app import build, utc_now
from afresh.config import Config, load
from afresh.kb import KnowledgeBase
from afresh.model.reports import RunReport
from afresh.ports import Clock

__all__ = ["Held", "assert_sound", "counts", "found", "index_of", "opened", "rows", "settings"]

EVERY_STORE = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
_DATABASES: dict[Path, str] = {}  # stores that tests know by a path and that are databases of a server

QUICK = {"network.allow": ["127.0.0.1/32"], "policy.backoff_base_seconds": 0.01, "policy.backoff_max_seconds": 0.02}


@contextmanager
def in_database(store: Path, url: str) -> Iterator[Path]:
    """A database under the path by which tests know it."""
    _DATABASES[store] = url
    try:
        yield store
    finally:
        del _DATABASES[store]


def url_of(store: Path) -> str:
    """The address of a store that tests know by its path."""
    return _DATABASES.get(store) or f"sqlite:///{store}"


def rows(store: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows of the store, read by a connection of our own."""
    return state.rows(_DATABASES.get(store, store), sql, *values)


def assert_sound(store: Path, *, stable: bool = True, embedded: bool = True) -> None:
    """The store is whole, nothing is doubled or half there, and words and vectors agree with the chunks."""
    state.assert_sound(_DATABASES.get(store, store), stable=stable, embedded=embedded)


def index_of(store: Path, name: str = "docs") -> dict[str, Held]:
    """Everything that can be searched of a source, by address."""
    return state.index_of(_DATABASES.get(store, store), name)


def settings(store: Path, flags: Mapping[str, object] | None = None) -> Config:
    """Settings that allow loopback and lose no time on back-off."""
    given = {"store.url": url_of(store), **QUICK, **(flags or {})}
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


COUNTED = (
    *("new", "changed", "unchanged", "not_modified", "deleted"),
    *("missing", "moved", "failed", "refused", "held"),
)


def counts(report: RunReport) -> dict[str, int]:
    """The numbers of a report that are not nought, without bytes."""
    return {name: number for name in COUNTED if (number := getattr(report, name))}


async def found(kb: KnowledgeBase, query: str, within: str = "docs") -> set[str]:
    """The addresses that a search brings."""
    answer = await kb.search.search(query, within=[within], mode="text", limit=100)
    return {hit.url for hit in answer.hits}
