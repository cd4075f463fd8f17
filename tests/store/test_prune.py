"""Retention: what is past it goes in small steps, and what is still needed stays."""

import asyncio
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from tests.fakes.state import assert_sound
from tests.forking import forking
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.crawl.run_verdict import RunEnding
from afresh.model.fetch import Failed, Gone, Moved, NotModified, Outcome, Seen
from afresh.model.filters import ALL_PAGES
from afresh.model.records import ChangeKind, PageStatus, RunMode, RunState
from afresh.model.retention import Prunable
from afresh.notify.outbox import MessageState
from afresh.ops.failpoints import VARIABLE, arm
from afresh.store.open import open_store
from afresh.store.store import Store
from afresh.testing import FrozenClock

SITE: dict[str, Seen] = {"": read("Root", "a", "b"), "a": read("Page a", "c"), "b": read("Page b")}
SITE |= {"c": read("Page c")}
WITHOUT_A: dict[str, Seen] = {"": read("Root, edited", "b"), "a": Gone(), "b": read("Page b")}
MAX_SECONDS = 30  # seconds until a process that should end counts as hung


async def _without_a(crawler: ManualCrawler) -> None:
    """Page a is read, and gone a run later; c was linked from it alone."""
    await crawler.crawl(SITE)
    await crawler.crawl({**WITHOUT_A, "c": Gone()})
    assert (await crawler.page("a")).status is PageStatus.DELETED


async def _prune(crawler: ManualCrawler, **ages: timedelta) -> int:
    before = crawler.clock() - ages.get("age", timedelta())
    return await crawler.store.retention.prune_pages(crawler.source.id, before, crawler.clock(), limit=100)


async def _known_page(crawler: ManualCrawler) -> list[str]:
    views = await crawler.store.pages.of_source(crawler.source.id, ALL_PAGES)
    return sorted(view.url.removeprefix(ROOT) for view in views)


# ---- deleted pages


async def test_R2_G14_a_tombstone_stays_for_its_time_and_then_goes(crawler: ManualCrawler) -> None:
    await _without_a(crawler)
    month = timedelta(days=30)
    crawler.clock.advance(days=29)
    assert await _prune(crawler, age=month) == 0
    crawler.clock.advance(days=2)
    counted = await crawler.store.retention.count_prunable(Prunable(deleted_pages=crawler.clock() - month))
    assert counted.deleted_pages == 2
    assert await _prune(crawler, age=month) == 2
    assert await _known_page(crawler) == ["", "b"]
    assert await _prune(crawler, age=month) == 0


async def test_R2_G3_attempts_keep_their_address_without_the_page(crawler: ManualCrawler) -> None:
    await _without_a(crawler)
    before = [attempt.id for attempt in await crawler.attempts("a")]
    assert await _prune(crawler) == 2
    found = list(await crawler.store.history.of_url(at("a")))
    assert [(each.page_id, each.url) for each in found] == [(None, at("a"))] * len(before)
    assert [each.id for each in reversed(found)] == before
    assert {each.source for each in found} == {"docs"}
    assert {each.source for each in await crawler.store.history.of_url(at("c"), crawler.source.id)} == {"docs"}
    assert {each.url for each in await crawler.changes()} >= {at("a")}, "changes stay"


async def test_R2_G14_a_page_that_returns_after_its_tombstone_went_is_new(crawler: ManualCrawler) -> None:
    await _without_a(crawler)
    numbers = {(await crawler.page("a")).id, (await crawler.page("c")).id}
    await _prune(crawler)
    await crawler.crawl({**SITE, "": read("Root, as it was", "a", "b")})
    page = await crawler.page("a")
    assert page.id not in numbers, "no number is given twice"
    assert (await crawler.page("c")).id not in numbers
    assert [each.outcome for each in await crawler.attempts("a") if each.outcome] == [Outcome.SUCCESS]
    assert [each.kind for each in await crawler.changes(run=crawler.run.id)].count(ChangeKind.NEW) == 2


async def test_R2_a_number_of_a_page_is_not_given_again_after_its_source_went(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    newest = max([(await crawler.page(path)).id for path in SITE])
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    again = await ManualCrawler.at(crawler.store, crawler.clock, "again")
    await again.crawl(SITE)
    assert (await again.page("")).id > newest


async def test_R2_a_deleted_page_that_is_still_linked_is_looked_at_again(crawler: ManualCrawler) -> None:
    """Its record goes, but a page may return behind a link that did not change."""
    await crawler.crawl(SITE)
    dead = {**SITE, "b": Gone(), "": NotModified(), "a": NotModified(), "c": NotModified()}
    await crawler.crawl(dead)
    assert await _prune(crawler) == 1
    assert (await crawler.store.links.frontier_is_open(crawler.source.id, ""))[0]
    assert [item.url for item in await crawler.store.queue.frontier(crawler.source.id)] == [at("b")]


async def test_R2_rows_of_a_run_that_is_open_stay(crawler: ManualCrawler) -> None:
    """Whether they wait, are in flight, or were looked at by it."""
    await crawler.crawl(SITE)
    await crawler.crawl({**WITHOUT_A, "": NotModified(), "c": Gone()})
    await crawler.join()
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("a", "c")
    assert await _prune(crawler) == 0, "they wait"
    claims = await crawler.claim()
    assert await _prune(crawler) == 0, "they are in flight"
    await crawler.commit(*[crawler.visit(claim, Gone()) for claim in claims])
    assert await _prune(crawler) == 0, "the run knows what it has looked at"
    await crawler.finish(RunState.PARTIAL)
    assert await _prune(crawler) == 2


async def test_R2_a_redirect_stays_while_its_target_is_there(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    moved = {**SITE, "a": Moved(to=at("new"), status_code=301), "new": read("Page a", "c")}
    await crawler.crawl(moved)
    assert (await crawler.page("a")).status is PageStatus.REDIRECT
    assert await _prune(crawler) == 0
    await crawler.crawl({"": read("Root, edited", "b"), "b": SITE["b"], "a": Gone(), "new": Gone(), "c": Gone()})
    crawler.clock.advance(days=1)
    assert await _prune(crawler) + await _prune(crawler) == 3
    assert await _known_page(crawler) == ["", "b"]


async def test_R2_the_root_and_pages_that_lead_on_stay(crawler: ManualCrawler) -> None:
    """A page that asks not to be indexed has no content, and its links count."""
    noindex = read("Hidden", "c")
    hidden = replace(noindex, document=replace(noindex.document, index=False))
    await crawler.crawl({"": read("Root", "a"), "a": hidden, "c": read("Page c")})
    assert (await crawler.page("a")).status is PageStatus.DELETED
    crawler.clock.advance(days=1)
    assert await _prune(crawler) == 0
    await crawler.crawl({"": Gone(), "a": hidden, "c": read("Page c")})
    assert await _prune(crawler) == 1, "nothing leads to the hidden page any more"
    assert await _known_page(crawler) == ["", "c"]


async def test_R2_a_page_whose_copies_are_not_gone_yet_stays(crawler: ManualCrawler) -> None:
    store, now = crawler.store, crawler.clock()
    await crawler.crawl(SITE)
    await crawler.join()
    await store.copies.take_sink("out", "there", crawler.worker)
    await store.copies.add("out", crawler.worker, [crawler.source.id], now)
    wanted = [each.copy for each in await store.copies.of_sink("out", [crawler.source.id])]
    held = [replace(each, remote_id=f"doc-{each.id}", state=PageStatus.ACTIVE) for each in wanted]
    await store.copies.record("out", crawler.worker, held, now)
    await crawler.crawl({**WITHOUT_A, "c": Gone()})
    assert await _prune(crawler) == 0
    gone = [replace(each, remote_id=None, state=PageStatus.DELETED) for each in held if each.url != at("b")]
    await store.copies.record("out", crawler.worker, gone, now)
    assert await _prune(crawler) == 2
    left = [each.copy.url for each in await store.copies.of_sink("out", [crawler.source.id])]
    assert sorted(left) == [at(""), at("b")]


# ---- attempts, changes, messages


async def test_R2_attempts_past_their_retention_go_but_not_the_latest_of_a_page(crawler: ManualCrawler) -> None:
    for number in range(4):
        await crawler.crawl({"": read(f"Root {number}", "a"), "a": read(f"Page a {number}")})
    failing: dict[str, Seen] = {"": NotModified(), "a": Failed(outcome=Outcome.TIMEOUT, reason="no answer")}
    await crawler.crawl(failing)
    before = crawler.clock() + timedelta(days=1)
    counted = (await crawler.store.retention.count_prunable(Prunable(attempts=before))).attempts
    assert await _pruned_attempts(crawler, before) == counted == 8
    assert [each.outcome for each in await crawler.attempts("a") if each.outcome] == [Outcome.TIMEOUT]
    assert [each.outcome for each in await crawler.attempts("") if each.outcome] == [Outcome.NOT_MODIFIED]
    page, latest = await crawler.store.history.root_attempt(crawler.source.id, ROOT)
    assert page is not None
    assert latest is not None
    assert {each.outcome for each in await crawler.attempts("a")} >= {None}, "the next look still waits"


async def test_R2_attempts_of_open_runs_and_younger_ones_stay(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    between = crawler.clock() + timedelta(seconds=1)
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("", "a", "b", "c")
    await crawler.look({path: NotModified() for path in SITE})
    later = crawler.clock() + timedelta(days=1)
    assert await _pruned_attempts(crawler, later) == 4, "those of the first run, which have successors"
    await crawler.sweep()
    await crawler.crawl({path: NotModified() for path in SITE})
    assert await _pruned_attempts(crawler, between) == 0
    assert await _pruned_attempts(crawler, later) == 4


async def test_R2_attempts_of_removed_records_go_with_their_retention(crawler: ManualCrawler) -> None:
    await _without_a(crawler)
    await _prune(crawler)
    await _pruned_attempts(crawler, crawler.clock() + timedelta(days=1))
    assert list(await crawler.store.history.of_url(at("a"))) == []


async def _pruned_attempts(crawler: ManualCrawler, before: datetime) -> int:
    number, after = 0, 0
    while True:
        done, place = await crawler.store.retention.prune_attempts(before, after=after, limit=3)
        number += done
        if place is None:
            return number
        assert place > after
        after = place


async def test_R2_changes_past_their_retention_go_but_not_those_still_to_be_sent(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    first = crawler.clock()
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("")
    await crawler.look({"": read("Root, edited", "a", "b")})
    ending = RunEnding(state=RunState.COMPLETED, counts={}, messages=(("ops", "pages"),))
    await crawler.store.runs.finish(await crawler.reload(), ending, crawler.clock())
    sent_run = crawler.run.id
    await crawler.crawl({**SITE, "": NotModified(), "a": read("Page a, edited", "c")})
    later = crawler.clock() + timedelta(days=1)
    assert (await crawler.store.retention.count_prunable(Prunable(changes=later))).changes == 4
    assert await crawler.store.retention.prune("changes", first - timedelta(days=1), limit=100) == 0
    assert await crawler.store.retention.prune("changes", later, limit=3) == 3
    assert await crawler.store.retention.prune("changes", later, limit=3) == 1
    assert await crawler.store.retention.prune("changes", later, limit=3) == 0
    newest, waiting = await crawler.changes()
    assert (newest.url, waiting.run) == (at("a"), sent_run), "the newest stays: no number is given twice"


async def test_R2_messages_that_are_over_go_and_those_that_wait_stay(crawler: ManualCrawler) -> None:
    store, clock = crawler.store, crawler.clock
    await crawler.join()
    await crawler.begin()
    messages = (("ops", "run.finished"), ("cms", "pages"), ("chat", "pages"))
    await store.runs.finish(crawler.run, RunEnding(state=RunState.COMPLETED, counts={}, messages=messages), clock())
    sent, dead, _ = await store.messages.due(clock())
    lease = clock() + timedelta(minutes=2)
    for message, state in ((sent, MessageState.SENT), (dead, MessageState.DEAD)):
        assert await store.messages.reserve(message, lease)
        await store.messages.record_attempt(message, state, clock(), again=None, error=None)
    clock.advance(days=8)
    assert await store.retention.prune("outbox", clock() - timedelta(days=30), limit=100) == 0
    assert (await store.retention.count_prunable(Prunable(outbox=clock()))).messages == 2
    assert await store.retention.prune("outbox", clock(), limit=1) == 1
    assert await store.retention.prune("outbox", clock(), limit=1) == 1
    assert await store.messages.count_outbox() == {"waiting": 1}


# ---- killed in the middle


def _ends(store: Path, failpoints: str) -> int:
    process = forking().Process(target=_live, args=(store, failpoints))
    process.start()
    process.join(MAX_SECONDS)
    assert process.exitcode is not None
    return process.exitcode


def _live(store: Path, failpoints: str) -> None:
    asyncio.run(_pruned(store, failpoints))


async def _pruned(store: Path, failpoints: str = "") -> None:
    library = await open_store(f"sqlite:///{store}")
    [source] = await library.sources.all()
    later = FrozenClock()() + timedelta(days=40)
    arm({VARIABLE: failpoints})
    await library.retention.prune_pages(source.id, later, later, limit=1)
    await library.retention.prune_pages(source.id, later, later, limit=1)
    await library.retention.prune_attempts(later, after=0, limit=100)
    arm({})
    await library.close()


@pytest.mark.slow
async def test_F139_killed_behind_every_statement_of_a_prune_the_store_is_sound(tmp_path: Path) -> None:
    full, store = tmp_path / "full.db", tmp_path / "killed.db"
    library: Store = await open_store(f"sqlite:///{full}")
    await _without_a(await ManualCrawler.at(library, FrozenClock()))
    await library.close()
    for statement in count(1):
        for leftover in ("-wal", "-shm"):
            store.with_name(store.name + leftover).unlink(missing_ok=True)
        shutil.copy(full, store)
        if _ends(store, f"sql=kill@{statement}") == 0:
            break
        assert_sound(store, stable=False)
        await _pruned(store)
        assert_sound(store, stable=False)
        assert await _left(store) == ["", "b"]
    assert statement > 10


async def _left(store: Path) -> list[str]:
    library = await open_store(f"sqlite:///{store}")
    try:
        return await _known_page(await ManualCrawler.at(library, FrozenClock()))
    finally:
        await library.close()
