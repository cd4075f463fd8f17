"""Deleted pages are remembered for a while, and then their records go: by runs, by `prune`, by the day."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.e2e.library import EVERY_STORE, assert_sound, opened, rows, settings
from tests.e2e.sites import lay, page, star

from afresh.cli import main
from afresh.events import Event, MaintenanceProgress
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Outcome
from afresh.model.filters import ALL_PAGES
from afresh.model.records import PageStatus
from afresh.testing import FrozenClock, TinySite

pytestmark = pytest.mark.usefixtures("work")


def _statuses(store: Path) -> dict[str, int]:
    return dict(rows(store, "select status, count(*) from pages group by status"))


async def _crawled(kb: KnowledgeBase, tiny: TinySite) -> None:
    """A page that is gone, and that no page links to any more."""
    lay(tiny, star(3))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", ["/p0", "/p1"]))
    tiny.delete("/p2")
    await kb.runs.refresh(["docs"])


@EVERY_STORE
async def test_R2_A7_G14_the_next_run_after_its_retention_removes_a_deleted_page(store: Path, tiny: TinySite) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        await _crawled(kb, tiny)
        number = {view.url: view.id for view in await kb.pages.of_source("docs", ALL_PAGES)}[tiny.at("/p2")]
        clock.advance(days=29)
        await kb.runs.refresh(["docs"])
        assert _statuses(store) == {"active": 3, "deleted": 1}
        clock.advance(days=2)
        await kb.runs.refresh(["docs"])
        assert _statuses(store) == {"active": 3}
        await kb.runs.refresh(["docs"])
        assert_sound(store)
        tiny.put("/p2", page("/p2"))
        tiny.put("/", page("/", ["/p0", "/p1", "/p2"]))
        (report,) = await kb.runs.refresh(["docs"])
        assert report.new == 1
        again = {view.url: view.id for view in await kb.pages.of_source("docs")}[tiny.at("/p2")]
        assert again != number


@EVERY_STORE
async def test_R2_G3_why_and_history_answer_from_attempts_when_the_record_is_gone(store: Path, tiny: TinySite) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        await _crawled(kb, tiny)
        known = await kb.pages.history(tiny.at("/p2"))
        done = await kb.status.prune(kept={"deleted_pages": timedelta()})
        assert (done.deleted_pages, done.attempts, done.changes, done.complete) == (1, 0, 0, True)
        for within in (None, "docs"):
            found = await kb.pages.history(tiny.at("/p2"), within=within)
            assert [each.id for each in found] == [each.id for each in known]
            assert {(each.page_id, each.source) for each in found} == {(None, "docs")}
            why = await kb.pages.explain(tiny.at("/p2"), within=within)
            assert (why.source, why.status, why.attempts) == ("docs", PageStatus.DELETED, 2)
            assert why.summary.startswith("404; deleted on 2026-01-05 09:00 UTC by run ")
            assert why.summary.endswith("; its record was removed since (retention.deleted_pages)")
            assert why.latest is not None
            assert why.latest.outcome is Outcome.GONE


async def test_R2_a_dead_link_is_looked_at_again_after_its_record_went(store: Path, tiny: TinySite) -> None:
    """Even where the page that links there did not change."""
    clock = FrozenClock()
    async with opened(store, {"retention.deleted_pages": "0d"}, clock=clock) as kb:
        lay(tiny, star(2))
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.delete("/p1")
        await kb.runs.refresh(["docs"])
        assert _statuses(store) == {"active": 2}
        tiny.put("/p1", page("/p1"))
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.new, _statuses(store)) == (1, {"active": 3})
        assert not [note for note in report.notes if "max_pages" in note]


@EVERY_STORE
async def test_R2_prune_counts_first_and_then_removes_table_by_table(store: Path, tiny: TinySite) -> None:
    clock, received = FrozenClock(), list[Event]()
    async with opened(store, clock=clock) as kb:
        await _crawled(kb, tiny)
        for number in range(3):
            tiny.edit("/p0", add_paragraph=f"more {number}")
            clock.advance(days=1)
            await kb.runs.refresh(["docs"])
        kept = dict.fromkeys(("deleted_pages", "attempts", "changes"), timedelta(days=1))
        clock.advance(days=2)
        planned = await kb.status.prune(kept=kept, dry_run=True)
        assert planned.dry_run
        assert _statuses(store) == {"active": 3, "deleted": 1}
        done = await kb.status.prune(kept=kept, vacuum=True, listener=received.append)
        for name in ("deleted_pages", "changes", "messages"):
            assert getattr(planned, name) == getattr(done, name)
        assert (done.deleted_pages, done.changes, done.messages) == (1, 8, 0)
        assert done.attempts == planned.attempts + 1, "the latest of the page that went"
        assert {(each.task, each.what) for each in received if isinstance(each, MaintenanceProgress)} == {
            ("prune", "deleted pages"),
            ("prune", "attempts"),
            ("prune", "changes"),
        }
        assert (await kb.status.prune(kept=kept)).attempts == 0
        latest = {view.url: (await kb.pages.explain(view.url)).latest for view in await kb.pages.of_source("docs")}
        assert all(each is not None and each.status_code in (200, 304) for each in latest.values())
        assert_sound(store)
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.not_modified, report.new) == (3, 0)


def test_R2_the_command_prunes_and_says_how_much(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tiny: TinySite
) -> None:
    store = tmp_path / "kb.db"

    async def crawled() -> None:
        async with opened(store) as kb:
            await _crawled(kb, tiny)

    asyncio.run(crawled())
    place = ["--store", f"sqlite:///{store}"]
    capsys.readouterr()
    assert main(["prune", *place, "--dry-run", "--deleted-pages", "0d"]) == 0
    assert capsys.readouterr().out.startswith(
        "Would remove 1 deleted page, 0 attempts, 0 changes, 0 messages, 0 former texts in "
    )
    assert main(["prune", *place, "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["deleted_pages"], reported["dry_run"], reported["complete"]) == (0, False, True)
    month = 30 * 86_400.0
    assert reported["retention"] == {
        "deleted_pages": month,
        "attempts": None,
        "changes": None,
        "outbox": month,
        "former_texts": month,
    }
    assert main(["prune", *place, "--deleted-pages", "0d", "--attempts", "0s", "--vacuum"]) == 0
    displayed = capsys.readouterr().out
    assert displayed.startswith("Removed 1 deleted page, ")
    assert "to the disk" in displayed
    assert _statuses(store) == {"active": 3}
    assert main(["prune", *place, "--attempts", "soon"]) == 2
    assert "expected a duration" in capsys.readouterr().err


async def test_R2_the_scheduler_prunes_by_itself(store: Path, tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        await _crawled(kb, tiny)
        clock.advance(days=31)

        async def until_tomorrow(stopping: asyncio.Event, seconds: float) -> bool:
            assert seconds == 86_400
            kb.stop()
            return stopping.is_set()

        monkeypatch.setattr("afresh.services.status.wait_event", until_tomorrow)
        await kb.schedules.keep()
    assert _statuses(store) == {"active": 3}


async def test_R2_what_serve_does_by_itself_includes_retention(kb: KnowledgeBase, store: Path) -> None:
    from afresh.server.background import tasks

    assert dict(tasks(kb, settings(store), works=False, schedules=True))["retention"] == kb.status.keep_pruned
