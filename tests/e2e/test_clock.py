"""F28: the clock of the machine is set while afresh works; and what a report calls seconds."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, index_of, opened, rows
from tests.e2e.sites import lay, star

from afresh.app import utc_now
from afresh.events import Event, PageStep
from afresh.testing import FrozenClock, TinySite

PAGES = 13


class SetClock:
    """The clock of the machine, set by some days when the n-th page is written."""

    def __init__(self, days: float, at_page: int = 3) -> None:
        self.days, self.left = days, at_page
        self.off = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self.off

    def receive(self, event: Event) -> None:
        """Count the pages that are written."""
        if isinstance(event, PageStep) and event.name == "commit":
            self.left -= 1
            if self.left == 0:
                self.off += timedelta(days=self.days)


@pytest.mark.parametrize("days", [1, -1, 3650], ids=["a-day-on", "a-day-back", "ten-years-on"])
async def test_F28_a_clock_that_is_set_in_the_middle_of_a_run_disturbs_nothing(
    days: int, store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(PAGES - 1))
    clock = SetClock(days)
    async with opened(store, clock=clock) as kb:
        first = await kb.runs.crawl(tiny.url, name="docs", listener=clock.receive)
        assert (first.state, counts(first)) == ("completed", {"new": PAGES})
        assert first.seconds < 60  # the time it worked, not what the clocks say
        before = index_of(store)
        tiny.fail("/p3", 503, times=1)  # what is tried again within the run comes due too
        clock.days, clock.left = -days, 3
        (again,) = await kb.runs.refresh(["docs"], listener=clock.receive)
        assert (again.state, again.deleted, again.missing) == ("completed", 0, 0)
        assert again.checked >= PAGES
    assert index_of(store) == before
    assert_sound(store)


async def test_F28_what_was_dated_ten_years_ahead_is_due_when_the_clock_is_right_again(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(PAGES - 1))
    async with opened(store, clock=FrozenClock(utc_now() + timedelta(days=3650))) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
    async with opened(store) as kb:
        (due,) = await kb.runs.refresh(["docs"], due=True)
        assert (due.state, due.not_modified, due.deleted) == ("completed", PAGES, 0)
        (nothing,) = await kb.runs.refresh(["docs"], due=True)
        assert nothing.checked == 0
    latest = utc_now() + timedelta(days=365)
    waiting = "select max(scheduled_for) < ? from page_crawls where outcome is null"
    assert rows(store, waiting, latest.isoformat()) == [(1,)]


async def test_the_seconds_of_a_run_that_went_on_leave_out_the_pause(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(40))
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:

        def stop(event: Event) -> None:
            if isinstance(event, PageStep) and event.name == "commit":
                kb.stop()

        stopped = await kb.runs.crawl(tiny.url, name="docs", listener=stop)
        assert stopped.state == "cancelled"
    clock.advance(hours=3)
    async with opened(store, clock=clock) as kb:
        done = await kb.runs.crawl(tiny.url, name="docs")
    assert (done.run, done.state) == (stopped.run, "completed")
    assert stopped.seconds < done.seconds < 3600
