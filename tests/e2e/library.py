"""A store for one test: opened through `app.build`, and read again beside the code under test."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from afresh.app import build, utc_now
from afresh.config import Config, load
from afresh.core.views import RunReport
from afresh.kb import KnowledgeBase
from afresh.ports import Clock
from afresh.testing.state import Held, assert_sound, index_of, rows

__all__ = ["Held", "assert_sound", "counts", "found", "index_of", "opened", "rows", "settings"]

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


COUNTED = (
    *("new", "changed", "unchanged", "not_modified", "deleted"),
    *("missing", "moved", "failed", "refused", "held"),
)


def counts(report: RunReport) -> dict[str, int]:
    """The numbers of a report that are not nought, without bytes."""
    return {name: number for name in COUNTED if (number := getattr(report, name))}


async def found(kb: KnowledgeBase, query: str, within: str = "docs") -> set[str]:
    """The addresses that a search brings."""
    answer = await kb.search(query, within=[within], mode="text", limit=100)
    return {hit.url for hit in answer.hits}
