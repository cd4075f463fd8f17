"""A schedule says when a source is due; `refresh --due` keeps to it (F89)."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened
from tests.e2e.sites import lay, star

from afresh.cli import main
from afresh.events import Event, Notice
from afresh.testing import FrozenClock, TinySite

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
FLAGS = {"policy.schedule": "30 4 * * *", "policy.time_zone": "Europe/Berlin", "policy.recheck_seconds": 60}


async def test_F89_a_source_is_due_at_the_times_of_its_schedule(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(2))
    clock = FrozenClock(NOON)
    async with opened(store, FLAGS, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        at = datetime(2026, 3, 5, 3, 30, tzinfo=UTC)
        assert (await kb.sources.plan("docs")).next_time == (await kb.sources.view("docs")).next_time == at
        clock.advance(timedelta(hours=15).total_seconds())
        [single_fetch] = await kb.sources.overviews(await kb.sources.all())
        assert (single_fetch.due, single_fetch.fresh, single_fetch.next_at, single_fetch.view.next_time) == (
            3,
            0,
            None,
            at,
        )
        assert await kb.runs.refresh(due=True) == [], "its pages are due, its time has not come"
        clock.advance(timedelta(hours=1).total_seconds())
        (report,) = await kb.runs.refresh(due=True)
        assert report.not_modified == 3
        assert await kb.runs.refresh(due=True) == []
        assert [each.mode for each in await kb.runs.refresh()] == ["refresh"], "who asks for it gets it at any time"


async def test_F89_without_a_schedule_pages_are_due_as_before(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(2))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        assert (await kb.sources.plan("docs")).next_time is None
        assert len(await kb.runs.refresh(due=True)) == 1


@pytest.mark.parametrize("words", [["plan", "docs"], ["refresh", "--due"], ["sources"]])
def test_F89_a_bad_schedule_stops_every_command_with_key_value_and_reason(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afresh.yaml").write_text('policy:\n  schedule: "61 * * * *"\n')
    assert main(words) == 2
    reported = capsys.readouterr().err
    assert "afresh.yaml line 2: policy.schedule: expected five cron fields" in reported
    assert "got '61 * * * *': the minute field is wrong" in reported


async def test_F25_two_timers_on_one_store_look_once_for_each_time_and_the_second_says_so(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    """Both find the source due at once; whoever comes second, during or after the look, leaves it."""
    lay(tiny, star(3))
    clock = FrozenClock(NOON)
    message: list[str] = []

    def receive(event: Event) -> None:
        if isinstance(event, Notice):
            message.append(event.text)

    async with opened(store, FLAGS, clock=clock) as one, opened(store, FLAGS, clock=clock) as two:
        await one.runs.crawl(tiny.url, name="docs")
        for day in range(3):
            clock.set(NOON + timedelta(days=day + 1))
            done = await asyncio.gather(*(kb.runs.refresh(due=True, listener=receive) for kb in (one, two)))
            assert sum(map(len, done)) == 1
            assert await one.runs.refresh(due=True) == await two.runs.refresh(due=True) == []
        assert len(message) == 3
        assert all(text.startswith("docs is left out: ") for text in message)
