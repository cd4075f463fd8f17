"""Numbers of large sources: counted less often than somebody asks, and never told from long ago."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import cast

import pytest
from tests.contract.desk import Desk, read
from tests.stores import new_store

from afresh.core.errors import StoreDamaged
from afresh.core.model import Source
from afresh.core.views import SourceView
from afresh.engine import kept as kept_module
from afresh.engine.kept import AGING_SECONDS, KEPT_SECONDS, MOST, OLD_SECONDS, PATIENCE, KeptNumbers, keeping
from afresh.store.dialect import Database
from afresh.store.store import Store
from afresh.testing import FrozenClock


class Slow(Store):
    """A store that says how large its sources are, and counts when it is let."""

    def __init__(self, db: Database, url: str) -> None:
        super().__init__(db, url)
        self.closed = False
        self.size = 50_000
        self.counted = 0
        self.given_up = 0
        self.trouble: StoreDamaged | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def source_view(self, source: Source) -> SourceView:
        self.counted += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.trouble is not None:
            raise self.trouble
        return replace(await super().source_view(source), pages=self.size)

    async def close(self) -> None:
        self.closed = True
        await super().close()


Stand = tuple[Slow, KeptNumbers, Desk, list[float]]


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    now = [0.0]
    async with new_store(tmp_path, Slow) as store:
        desk = await Desk.at(store, FrozenClock())
        yield store, KeptNumbers(store, lambda: now[0]), desk, now


async def counted(kept: KeptNumbers) -> None:
    """Wait until nothing is counted any more."""
    await asyncio.wait(kept._counting.values(), timeout=30)


async def test_a_small_source_is_counted_whenever_somebody_asks(stand: Stand) -> None:
    store, kept, desk, _ = stand
    for pages in (3, 4, 5):
        store.size = pages
        assert (await kept.source_view(desk.source)).pages == pages
    assert store.counted == 3


async def test_a_large_source_is_told_as_it_was_counted_and_its_runs_as_they_are(stand: Stand) -> None:
    store, kept, desk, now = stand
    await kept.source_view(desk.source)
    store.size = 60_000
    await desk.join()
    await desk.crawl({"": read("Root")})
    view = await kept.source_view(desk.source)
    assert (view.pages, store.counted) == (50_000, 1)
    assert (view.last_run, view.last_state) == (desk.run.id, "completed")

    now[0] += KEPT_SECONDS + 1
    store.open.clear()
    assert (await kept.source_view(desk.source)).pages == 50_000  # counted behind our back
    assert (await kept.source_view(desk.source)).pages == 50_000
    store.open.set()
    await counted(kept)
    assert ((await kept.source_view(desk.source)).pages, store.counted) == (60_000, 2)


async def test_who_asks_while_it_is_counted_for_the_first_time_waits_for_the_same_count(stand: Stand) -> None:
    store, kept, desk, _ = stand
    store.open.clear()
    first, second, third = (asyncio.create_task(kept.source_view(desk.source)) for _ in range(3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()  # who leaves takes the count from nobody
    store.open.set()
    assert [(await each).pages for each in (second, third)] == [50_000, 50_000]
    assert store.counted == 1
    assert first.cancelled()


async def test_what_is_old_is_waited_for(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    store, kept, desk, now = stand
    await kept.source_view(desk.source)
    store.size = 60_000
    monkeypatch.setattr(kept_module, "PATIENCE", 30)
    now[0] += AGING_SECONDS + 1
    assert (await kept.source_view(desk.source)).pages == 60_000
    store.size = 70_000
    now[0] += OLD_SECONDS + 1
    store.open.clear()
    asked = asyncio.create_task(kept.source_view(desk.source))
    assert not (await asyncio.wait({asked}, timeout=1.5 * PATIENCE))[0]
    store.open.set()
    assert (await asked).pages == 70_000


async def test_only_numbers_of_large_sources_are_kept_and_no_more_than_are_needed(stand: Stand) -> None:
    store, kept, desk, now = stand
    store.size = 3
    await kept.totals()
    assert kept.numbers_kept == 1, "it may be one of a large store"
    await kept.source_view(desk.source)
    await kept.totals()
    assert kept.numbers_kept == 0
    store.size = 50_000
    await kept.source_view(desk.source)
    assert kept.numbers_kept == 1
    for day in range(2 * MOST):
        await kept.changes_by_day([desk.source.id], date(2026, 1, 1) + timedelta(days=day))
    assert kept.numbers_kept == MOST
    now[0] += OLD_SECONDS + 1
    await kept.totals()
    assert kept.numbers_kept == 1


async def test_a_large_source_that_is_gone_no_longer_keeps_the_numbers_of_the_others_old(
    stand: Stand,
) -> None:
    store, kept, desk, _ = stand
    await kept.source_view(desk.source)
    assert (await kept.totals())["sources"] == 1
    await store.remove_source(desk.source.id, desk.clock())  # by whatever process
    assert (await kept.totals())["sources"] == 1, "as it was counted a moment ago"
    assert await kept.sources("docs") == []
    assert (await kept.totals())["sources"] == 1, "it may have another name"
    assert await kept.sources() == []
    assert (await kept.totals())["sources"] == 0


async def test_trouble_is_told_to_who_asks_next_and_then_forgotten(stand: Stand) -> None:
    store, kept, desk, now = stand
    await kept.source_view(desk.source)
    now[0] += KEPT_SECONDS + 1
    store.open.clear()
    store.trouble = StoreDamaged("torn")
    assert (await kept.source_view(desk.source)).pages == 50_000  # counted behind our back
    store.open.set()
    await counted(kept)
    assert (store.counted, kept.numbers_kept) == (2, 0)
    with pytest.raises(StoreDamaged):
        await kept.source_view(desk.source)
    store.trouble, store.size = None, 60_000
    assert (await kept.source_view(desk.source)).pages == 60_000


async def test_closing_ends_the_counting(stand: Stand) -> None:
    store, kept, desk, now = stand
    await kept.source_view(desk.source)
    now[0] += KEPT_SECONDS + 1
    store.open.clear()
    await kept.source_view(desk.source)
    await asyncio.sleep(0)
    await kept.close()
    assert (store.closed, store.counted, store.given_up) == (True, 2, 1)
    with pytest.raises(AttributeError):
        _ = cast("KeptNumbers", keeping(store)).nothing_like_it
