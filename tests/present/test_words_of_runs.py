"""What people read of a run and of the store says what happened, and promises only what will be done."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from tests.fakes.records import report

from afresh.cli import details, lists
from afresh.cli.report import draw, exit_code, headline, savings
from afresh.crawl.heartbeat import LiveWorkers
from afresh.digest.records import LINKS
from afresh.model.records import Run, RunId, RunMode, RunState, Source, SourceId
from afresh.model.reports import HostQueue, StoreStatus, WorkerView
from afresh.server.web.words import receipt, run_state
from afresh.services.status_views import live_report

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NOTHING: dict[str, object] = {"new": 0, "changed": 0, "not_modified": 0, "unchanged": 0}
UNKEPT = {**NOTHING, "known": 0, "checked": 1, "kept": False}


def visible(part: RenderableType) -> str:
    """A part as it is printed, with single spaces."""
    console = Console(width=200, highlight=False)
    with console.capture() as captured:
        console.print(part)
    return " ".join(captured.get().split())


def test_U3_a_source_that_was_not_kept_is_not_tried_again() -> None:
    notes = ("nothing was read, so python-docs was not kept",)
    content = visible(draw(report(state="failed", failed=1, notes=notes, **UNKEPT), again="afresh crawl URL"))
    assert "1 failed" in content
    assert "kept as they were" not in content
    assert "tried again" not in content
    assert "python-docs was not kept" in content
    assert "To keep the source anyway, run afresh crawl URL --keep" in content
    kept = visible(draw(report(state="partial", failed=1)))
    assert "previous version kept, retried later" in kept


def test_U3_a_first_crawl_that_read_nothing_is_a_failure_to_scripts() -> None:
    assert exit_code([report(state="completed", **{**UNKEPT, "checked": 0})]) == 1
    assert exit_code([report(state="completed")]) == 0


def test_U4_pages_that_were_downloaded_and_doubted_or_failed_are_not_saved() -> None:
    for kind in ("doubtful", "failed"):
        odd = report(**{**NOTHING, "known": 12, "checked": 12, "not_modified": 9, kind: 3})
        assert "75 % of downloads saved" in savings(odd)
        assert "75 % of the downloads" in receipt(odd)


PARTS = ("new", "changed", "not_modified", "unchanged", "moved_read", "refused", "doubtful", "failed")
counted = st.integers(0, 5_000)


@given(st.fixed_dictionaries(dict.fromkeys((*PARTS, "gone", "moved", "deleted", "known"), counted)))
def test_the_parts_of_a_sum_add_up_to_it(counts: dict[str, int]) -> None:
    """The pages that redirected or are gone are what is left."""
    checked = sum(counts[name] for name in PARTS) + counts.pop("gone")
    run = report(**counts, checked=checked)
    for line in (savings(run), receipt(run)):
        if not checked:
            continue
        head, parts = line.split(" checked: ")
        numbers = re.findall(r"(?:^|, )([\d,]+) [a-z]", parts.partition(";")[0])
        assert sum(int(number.replace(",", "")) for number in numbers) == int(head.replace(",", "")) == checked


def test_a_first_run_that_found_nothing_does_not_say_completed() -> None:
    empty = report(state="completed", mode="crawl", **{**UNKEPT, "checked": 0})
    assert headline(empty).plain == "python-docs · crawl: nothing was found"
    assert run_state(empty) == "nothing was found"
    assert headline(report(state="failed", mode="crawl", **UNKEPT)).plain == "python-docs · crawl failed in 0.4 s"


def test_U4_a_run_under_way_is_running_for_a_while() -> None:
    assert headline(report(state="running", seconds=5.1)).plain.endswith("refresh running for 5.1 s")


def test_U4_claimed_pages_are_not_called_in_flight() -> None:
    worker = WorkerView(host="here", pid=7, since=NOW, heartbeat_at=NOW, runs=(1,), held=21)
    status = StoreStatus(
        store="kb.db",
        sources=1,
        pages=50,
        doubtful=0,
        chunks=50,
        attempts=50,
        pending=29,
        in_flight=21,
        oldest_pending=None,
        runs=(),
        workers=(worker,),
        size_bytes=1,
        hosts=(HostQueue(domain="docs.test", waiting=29, held=21, oldest=None),),
    )
    content = visible(details.status(status, NOW))
    assert "in flight" not in content
    assert "claimed by workers 21" in content
    assert "claimed 21 pages" in content
    assert "docs.test: 29 waiting, 21 claimed" in content


def test_U4_a_link_that_backs_off_is_not_promised_to_the_next_update() -> None:
    content = visible(draw(report(source=LINKS, mode="due", state="partial", error="1 page could not be read")))
    assert "To retry, run afresh init-kb when it is due" in content


def _source() -> Source:
    return Source(
        id=SourceId(1), name="docs", version=None, kind="web", url="https://docs.test/", created_at=NOW, updated_at=NOW
    )


def _run(**more: object) -> Run:
    values: dict[str, object] = {
        "id": RunId(7),
        "source_id": SourceId(1),
        "mode": RunMode.CRAWL,
        "state": RunState.RUNNING,
        "worker": "w",
        "started_at": NOW,
        "taken_at": NOW,
    }
    return Run(**(values | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("beats", "words"),
    [
        ({"w": NOW + timedelta(seconds=20)}, "docs · crawl interrupted after 20 s"),
        ({"w": NOW - timedelta(seconds=1)}, "docs · crawl interrupted before it stored anything"),
        ({}, "docs · crawl interrupted before it stored anything"),
    ],
)
def test_U4_a_run_whose_worker_died_is_interrupted_not_cancelled(beats: dict[str, datetime], words: str) -> None:
    alive = LiveWorkers(frozenset(), frozenset(), beats)
    content = live_report(_run(), _source(), alive, NOW + timedelta(hours=1))
    assert content.state == RunState.CANCELLED
    assert headline(content).plain == words
    rows = visible(lists.runs([content]))
    assert "interrupted" in rows
    assert "cancelled" not in rows
    assert run_state(content) == "interrupted"


def test_U4_a_run_that_somebody_cancelled_is_cancelled() -> None:
    ended = _run(state=RunState.CANCELLED, finished_at=NOW + timedelta(seconds=12))
    content = live_report(ended, _source(), LiveWorkers(frozenset(), frozenset()), NOW)
    assert headline(content).plain == "docs · crawl cancelled after 12 s"
    assert "cancelled" in visible(lists.runs([content]))
    assert run_state(content) == "cancelled"
