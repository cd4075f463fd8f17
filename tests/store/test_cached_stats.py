"""Numbers of large sources: counted less often than somebody asks, and never told from long ago."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.store.crawler import ManualCrawler, read
from tests.stores import new_store

from afresh.errors import StoreDamaged
from afresh.model.records import Source
from afresh.model.reports import SourceView
from afresh.store import stats as kept_module
from afresh.store.dialect import Database
from afresh.store.stats import (
    AGING_SECONDS,
    FRESH_SECONDS,
    MAX_COUNTS,
    OLD_SECONDS,
    SHORT_WAIT_SECONDS,
    CachedStats,
    StatsRepository,
)
from afresh.store.store import Store
from afresh.testing import FrozenClock


class SlowStats(StatsRepository):
    """A repository that says how large its sources are, and counts when it is let."""

    def __init__(self, inner: StatsRepository) -> None:
        super().__init__(inner.db, inner.caches, inner.retry)
        self.size = 50_000
        self.counted = 0
        self.given_up = 0
        self.error: StoreDamaged | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def source_view(self, source: Source) -> SourceView:
        self.counted += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.error is not None:
            raise self.error
        return replace(await super().source_view(source), pages=self.size)


class Slow(Store):
    """A store with such a repository."""

    stats: SlowStats

    def __init__(self, db: Database, url: str) -> None:
        super().__init__(db, url)
        self.stats = SlowStats(self.stats)


Stand = tuple[Slow, CachedStats, ManualCrawler, list[float]]


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    now = [0.0]
    async with new_store(tmp_path, Slow) as store:
        crawler = await ManualCrawler.at(store, FrozenClock())
        yield store, CachedStats(store, lambda: now[0]), crawler, now


async def counted(kept: CachedStats) -> None:
    """Wait until nothing is counted any more."""
    await asyncio.wait(kept._counting.values(), timeout=30)


async def test_a_small_source_is_counted_whenever_somebody_asks(stand: Stand) -> None:
    store, kept, crawler, _ = stand
    for pages in (3, 4, 5):
        store.stats.size = pages
        assert (await kept.source_view(crawler.source)).pages == pages
    assert store.stats.counted == 3


async def test_the_counts_of_a_large_source_are_cached_but_not_its_runs(stand: Stand) -> None:
    store, kept, crawler, now = stand
    await kept.source_view(crawler.source)
    store.stats.size = 60_000
    await crawler.join()
    await crawler.crawl({"": read("Root")})
    view = await kept.source_view(crawler.source)
    assert (view.pages, store.stats.counted) == (50_000, 1)
    assert (view.last_run, view.last_state) == (crawler.run.id, "completed")

    now[0] += FRESH_SECONDS + 1
    store.stats.open.clear()
    assert (await kept.source_view(crawler.source)).pages == 50_000  # counted behind our back
    assert (await kept.source_view(crawler.source)).pages == 50_000
    store.stats.open.set()
    await counted(kept)
    assert ((await kept.source_view(crawler.source)).pages, store.stats.counted) == (60_000, 2)


async def test_callers_during_the_first_count_share_it(stand: Stand) -> None:
    store, kept, crawler, _ = stand
    store.stats.open.clear()
    first, second, third = (asyncio.create_task(kept.source_view(crawler.source)) for _ in range(3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()  # who leaves takes the count from nobody
    store.stats.open.set()
    assert [(await each).pages for each in (second, third)] == [50_000, 50_000]
    assert store.stats.counted == 1
    assert first.cancelled()


async def test_what_is_old_is_waited_for(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    store, kept, crawler, now = stand
    await kept.source_view(crawler.source)
    store.stats.size = 60_000
    monkeypatch.setattr(kept_module, "SHORT_WAIT_SECONDS", 30)
    now[0] += AGING_SECONDS + 1
    assert (await kept.source_view(crawler.source)).pages == 60_000
    store.stats.size = 70_000
    now[0] += OLD_SECONDS + 1
    store.stats.open.clear()
    asked = asyncio.create_task(kept.source_view(crawler.source))
    assert not (await asyncio.wait({asked}, timeout=1.5 * SHORT_WAIT_SECONDS))[0]
    store.stats.open.set()
    assert (await asked).pages == 70_000


async def test_only_numbers_of_large_sources_are_kept_and_no_more_than_are_needed(stand: Stand) -> None:
    store, kept, crawler, now = stand
    store.stats.size = 3
    await kept.totals()
    assert len(kept._counts) == 1, "it may be one of a large store"
    await kept.source_view(crawler.source)
    await kept.totals()
    assert len(kept._counts) == 0
    store.stats.size = 50_000
    await kept.source_view(crawler.source)
    assert len(kept._counts) == 1
    for day in range(2 * MAX_COUNTS):
        await kept.changes_by_day([crawler.source.id], date(2026, 1, 1) + timedelta(days=day))
    assert len(kept._counts) == MAX_COUNTS
    now[0] += OLD_SECONDS + 1
    await kept.totals()
    assert len(kept._counts) == 1


async def test_a_large_source_that_is_gone_no_longer_keeps_the_numbers_of_the_others_old(stand: Stand) -> None:
    store, kept, crawler, _ = stand
    await kept.source_view(crawler.source)
    assert (await kept.totals())["sources"] == 1
    await store.sources.remove(crawler.source.id, crawler.clock())  # by whatever process
    assert (await kept.totals())["sources"] == 0


async def test_an_error_reaches_the_next_caller_and_is_then_forgotten(stand: Stand) -> None:
    store, kept, crawler, now = stand
    await kept.source_view(crawler.source)
    now[0] += FRESH_SECONDS + 1
    store.stats.open.clear()
    store.stats.error = StoreDamaged("torn")
    assert (await kept.source_view(crawler.source)).pages == 50_000  # counted behind our back
    store.stats.open.set()
    await counted(kept)
    assert (store.stats.counted, len(kept._counts)) == (2, 0)
    with pytest.raises(StoreDamaged):
        await kept.source_view(crawler.source)
    store.stats.error, store.stats.size = None, 60_000
    assert (await kept.source_view(crawler.source)).pages == 60_000


async def test_closing_ends_the_counting(stand: Stand) -> None:
    store, kept, crawler, now = stand
    await kept.source_view(crawler.source)
    now[0] += FRESH_SECONDS + 1
    store.stats.open.clear()
    await kept.source_view(crawler.source)
    await asyncio.sleep(0)
    await kept.close()
    assert (store.stats.counted, store.stats.given_up) == (2, 1)
