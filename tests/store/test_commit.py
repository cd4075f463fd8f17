"""What a commit writes: the attempt, the page, its content, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, chunks_of, read

from afresh.model.fetch import Chunk, Failed, Gone, Moved, NotModified, Outcome, Refused, Seen, Validators
from afresh.model.filters import ALL_PAGES
from afresh.model.records import ChangeKind, PageStatus, RunMode, Visit
from afresh.model.reports import LinkView, SearchHit

SITE: dict[str, Seen] = {
    "": read("The root of all\n\nSecond part", "a", etag='"r1"', title="Root"),
    "a": read("Apples grow here", "", "b", etag='"a1"', title="Apples", language="en"),
    "b": read("Bananas grow here", title="Bananas"),
}


async def test_A1_A6_a_new_page_is_stored_whole(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    page, now = await crawler.page("a"), crawler.clock()
    assert (page.status, page.title, page.depth, page.language) == (PageStatus.ACTIVE, "Apples", 1, "en")
    assert (page.validators.etag, page.content_type, page.recipe) == ('"a1"', "text/html", "r1")
    assert page.content_hash is not None
    assert page.links_hash is not None
    assert page.checked_at == page.changed_at == page.last_scraped == now
    assert (await crawler.store.pages.content(page.id)).markdown == "Apples grow here"
    [hit] = await search(crawler.store, "apples")
    assert (hit.url, hit.title, hit.checked_at, hit.changed_at) == (at("a"), "Apples", now, now)


async def test_C6_one_time_stamps_source_pages_and_links_of_a_run(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    source = await crawler.store.sources.get(crawler.source.id)
    assert source is not None
    pages = await crawler.store.pages.of_source(crawler.source.id)
    links = await crawler.store.links.of_source(crawler.source.id)
    stamps = {source.crawl_time, *(page.crawl_time for page in pages), *(link.crawl_time for link in links)}
    assert stamps == {crawler.run.started_at}
    assert {page.last_seen for page in pages} == {crawler.run.started_at}


async def _index(crawler: ManualCrawler) -> tuple[list[SearchHit], list[LinkView], object, object]:
    """Everything a reader of the index can see but check times, of which the row's own time is one."""
    pages = await crawler.store.pages.of_source(crawler.source.id, ALL_PAGES)
    hits = [
        replace(hit, checked_at=None, seen_at=None)
        for word in ("root", "apples")
        for hit in await search(crawler.store, word)
    ]
    links = [replace(link, crawl_time=None) for link in await crawler.store.links.of_source(crawler.source.id)]
    texts = [await crawler.store.pages.content(page.id) for page in pages]
    times = ("checked_at", "crawl_time", "last_seen", "last_scraped", "next_look", "updated_at")
    looks: dict[str, Any] = dict.fromkeys(times)
    still = [replace(page, **looks) for page in pages]
    return hits, links, texts, still


async def test_a_page_that_was_not_asked_stays_as_checked_when_it_was(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    before = await crawler.page("a")
    crawler.clock.advance(60)
    unasked = NotModified(status_code=None, skip_reason="not asked")
    await crawler.crawl(dict.fromkeys(SITE, unasked), RunMode.REFRESH)
    page = await crawler.page("a")
    assert (page.checked_at, page.last_seen) == (before.checked_at, crawler.run.started_at)
    [_, attempt, _] = await crawler.attempts("a")
    assert (attempt.outcome, attempt.reason) == (Outcome.NOT_MODIFIED, "not asked")


async def test_A4_a_304_leaves_every_page_as_decided(crawler: ManualCrawler) -> None:
    """Whatever happened to a page before, the row holds what `decide` returned, and the times of the run."""
    failed, refused = Failed(outcome=Outcome.TIMEOUT, reason="late"), Refused(reason="403 Forbidden", status_code=403)
    crashed = Failed(reason="the parser crashed", crash_hash="b" * 64)
    pasts: dict[str, Seen] = {
        "ok": NotModified(),
        "failed": failed,
        "gone": Gone(),
        "refused": refused,
        "crashed": crashed,
    }
    await crawler.crawl({"": read("Root", *pasts), **{path: read(f"Text of {path}", etag='"1"') for path in pasts}})
    crawler.clock.advance(60)
    await crawler.crawl({"": NotModified(), **pasts}, RunMode.REFRESH)
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue(*pasts)
    renewed = NotModified(validators=Validators(etag='"2"'))
    seen: dict[str, Seen] = {at(path): renewed if path == "gone" else NotModified() for path in pasts}
    visits = [crawler.visit(claim, seen[claim.page.url]) for claim in await crawler.claim()]
    assert len(await crawler.commit(*visits)) == len(pasts)
    for visit in visits:
        stored = await crawler.page(visit.claim.page.url.removeprefix(at("")))
        decided, began = visit.decision.page, crawler.run.started_at
        seen_at = began if visit.decision.outcome is Outcome.NOT_MODIFIED else decided.last_seen
        assert stored == replace(decided, crawl_time=began, last_seen=seen_at, updated_at=stored.updated_at)


async def test_A4_G4_a_304_changes_nothing_but_the_attempt_and_check_times(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    before, changes = await _index(crawler), await crawler.changes()
    await crawler.crawl(dict.fromkeys(SITE, NotModified()), RunMode.REFRESH)
    assert await _index(crawler) == before
    assert await crawler.changes() == changes
    page = await crawler.page("a")
    assert (page.checked_at, page.crawl_time, page.last_seen) == (
        crawler.clock(),
        crawler.run.started_at,
        crawler.run.started_at,
    )
    assert page.changed_at is not None
    assert page.changed_at < crawler.run.started_at
    counts = (await crawler.reload()).counts
    assert (counts["checked"], counts["not_modified"]) == (3, 3)
    assert "chunks_made" not in counts
    [_, again, _] = await crawler.attempts("a")
    assert (again.outcome, again.status_code, again.reason) == (Outcome.NOT_MODIFIED, 304, '304 by ETag "a1"')


async def test_F48_a_304_may_bring_a_new_etag(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    renewed = NotModified(validators=Validators(etag='"a2"'))
    await crawler.crawl({**SITE, "a": renewed})
    assert (await crawler.page("a")).validators.etag == '"a2"'


async def test_C9_F46_the_same_content_with_another_etag_is_kept(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    before = await crawler.page("b")
    await crawler.crawl({**SITE, "b": read("Bananas grow here", title="Bananas", etag='"new"')})
    counts = (await crawler.reload()).counts
    assert (counts["unchanged"], counts.get("changed", 0), counts.get("chunks_made", 0)) == (3, 0, 0)
    page = await crawler.page("b")
    assert page.validators.etag == '"new"'
    assert (page.content_hash, page.changed_at) == (before.content_hash, before.changed_at)
    assert page.last_scraped == crawler.clock()
    assert [hit.url for hit in await search(crawler.store, "bananas")] == [at("b")]
    assert await crawler.changes(run=crawler.run.id) == []


async def test_A5_A24_changed_content_is_replaced_together_with_its_etag(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    before = await crawler.page("a")
    await crawler.crawl({**SITE, "a": read("Pears grow here", "c", etag='"a2"', title="Pears")})
    after = await crawler.page("a")
    assert after.id == before.id
    assert (after.title, after.validators.etag, after.depth) == ("Pears", '"a2"', 1)
    assert after.content_hash != before.content_hash
    assert after.changed_at == crawler.clock()
    assert await search(crawler.store, "apples") == []
    assert [hit.url for hit in await search(crawler.store, "pears")] == [at("a")]
    assert (await crawler.store.pages.content(after.id)).markdown == "Pears grow here"
    assert (await crawler.page("c")).depth == 2
    [change] = await crawler.changes(run=crawler.run.id)
    assert (change.kind, change.url, change.at) == (ChangeKind.CHANGED, at("a"), crawler.clock())
    assert (change.old_hash, change.new_hash) == (before.content_hash, after.content_hash)


FAILURES: list[Seen] = [
    Failed(outcome=Outcome.TIMEOUT, reason="no answer within 60 s"),
    Failed(outcome=Outcome.BLOCKED_5XX, reason="503 Service Unavailable", status_code=503),
    Failed(outcome=Outcome.BLOCKED_4XX, reason="429", status_code=429, retry_after=120),
    Refused(outcome=Outcome.BLOCKED_ROBOTS, reason="robots.txt line 12"),
    Refused(outcome=Outcome.BLOCKED_4XX, reason="403 Forbidden", status_code=403),
    Refused(outcome=Outcome.FAILED, reason="address not allowed"),
]


@pytest.mark.parametrize("seen", FAILURES, ids=lambda seen: seen.reason)
async def test_B2_B11_a_failure_changes_no_content_and_is_in_the_attempt(crawler: ManualCrawler, seen: Failed) -> None:
    await crawler.crawl(SITE)
    before, page = await _index(crawler), await crawler.page("a")
    await crawler.crawl({**SITE, "a": seen}, RunMode.REFRESH)
    assert await _index(crawler) == before
    after = await crawler.page("a")
    assert after.last_seen == page.last_seen
    asked_to_wait = getattr(seen, "retry_after", None) is not None
    assert (after.failures, after.checked_at) == (0 if asked_to_wait else 1, crawler.clock())
    latest, following, _, attempts = await crawler.store.history.evidence(after)
    assert latest is not None
    assert (latest.outcome, latest.status_code, latest.error_message) == (seen.outcome, seen.status_code, seen.reason)
    assert following is not None
    assert following > crawler.clock()
    assert attempts == 2


async def test_a_page_that_never_answered_is_an_error(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": Failed(outcome=Outcome.TIMEOUT, reason="no answer")})
    assert (await crawler.page("")).status is PageStatus.ERROR
    assert await crawler.urls() == []
    await crawler.crawl({"": read("At last")})
    page = await crawler.page("")
    assert (page.status, page.failures) == (PageStatus.ACTIVE, 0)


# ---- the history


async def test_B3_B4_B5_every_look_is_a_row_of_its_own_and_stays(crawler: ManualCrawler) -> None:
    """What a counter would tell is the fold of the rows."""
    down = Failed(outcome=Outcome.BLOCKED_5XX, reason="503", status_code=503)
    outcomes: list[Seen] = [read("One"), NotModified(), down, down, read("Two"), Gone()]
    for seen in outcomes:
        crawler.clock.advance(days=2)
        await crawler.crawl({"": seen})
    rows = await crawler.attempts("")
    assert [row.outcome for row in rows if row.outcome is not Outcome.CANCELLED] == [
        Outcome.SUCCESS,
        Outcome.NOT_MODIFIED,
        Outcome.BLOCKED_5XX,
        Outcome.BLOCKED_5XX,
        Outcome.SUCCESS,
        Outcome.GONE,
    ]
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.locked_at is None and row.completed_at is not None for row in rows)


async def test_B6_finishing_stamps_the_row_and_clears_the_lock(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    now = crawler.clock.advance(3)
    await crawler.commit(crawler.visit(claim, Failed(outcome=Outcome.FAILED, reason="reset", status_code=None)))
    [row, _] = await crawler.attempts("")
    assert (row.completed_at, row.outcome, row.error_message) == (now, Outcome.FAILED, "reset")
    assert (row.locked_at, row.locked_by, row.run_id) == (None, None, crawler.run.id)


async def test_B4_a_retry_is_a_new_row_of_the_same_run(crawler: ManualCrawler) -> None:
    crawler.policy = replace(crawler.policy, retries=2)
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.look({"": Failed(outcome=Outcome.TIMEOUT, reason="no answer")})
    first, second = await crawler.attempts("")
    assert (second.run_id, second.outcome) == (crawler.run.id, None)
    assert second.scheduled_for > crawler.clock()
    backlog = await crawler.store.queue.backlog(crawler.run.id)
    assert (backlog.open, backlog.next_at) == (1, second.scheduled_for)
    assert await crawler.claim() == []
    crawler.clock.set(second.scheduled_for)
    [claim] = await crawler.claim()
    assert claim.crawl_id == second.id != first.id
    counts = (await crawler.reload()).counts
    assert (counts["retried"], counts.get("checked", 0)) == (1, 0)


async def test_the_next_look_is_the_open_row_of_no_run(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    [_, following] = await crawler.attempts("a")
    assert (following.outcome, following.run_id) == (None, None)
    assert (following.scheduled_for - crawler.clock()).total_seconds() == crawler.policy.recheck_seconds


async def test_A23_a_page_that_is_gone_has_no_next_look(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "gone")})
    [row] = await crawler.attempts("gone")
    assert (row.outcome, row.status_code) == (Outcome.GONE, 404)
    assert (await crawler.page("gone")).status is PageStatus.DELETED


# ---- whole or absent


async def test_A22_a_visit_committed_twice_is_written_once(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    visit = crawler.visit(claim, read("Root", "a"))
    assert await crawler.commit(visit) == [at("")]
    before = (await crawler.reload(), await _index(crawler), await crawler.attempts(""), await crawler.changes())
    assert await crawler.commit(visit) == []
    assert (
        await crawler.reload(),
        await _index(crawler),
        await crawler.attempts(""),
        await crawler.changes(),
    ) == before


class Torn(tuple[Chunk, ...]):
    """Chunks that break when they are written."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        raise RuntimeError("torn")


def _torn(visit: Visit) -> Visit:
    return replace(visit, content=replace(visit.content, chunks=Torn(visit.content.chunks)))


async def test_A22_a_commit_that_breaks_leaves_nothing_and_can_be_repeated(crawler: ManualCrawler) -> None:
    """Also the pages of the batch that were in order, and what the store remembers beside its tables."""
    await crawler.begin()
    await crawler.enqueue("", "other")
    before = await _index(crawler)
    claims = sorted(await crawler.claim(), key=lambda claim: claim.page.url)
    run, rows = await crawler.reload(), await crawler.attempts("")
    good, bad = (crawler.visit(claim, read(f"Text of {claim.page.url}", "a", "b")) for claim in claims)
    with pytest.raises(RuntimeError, match="torn"):
        await crawler.commit(good, _torn(bad))
    assert await _index(crawler) == before
    assert await crawler.reload() == run
    assert await crawler.attempts("") == rows
    assert await crawler.changes() == []
    assert await crawler.store.pages.find(at("a")) == []

    assert await crawler.commit(good, bad) == [at(""), at("other")]
    assert {claim.page.url for claim in await crawler.claim()} == {at("a"), at("b")}
    assert {link.url: link.page_count for link in await crawler.store.links.of_source(crawler.source.id)} == {
        at("a"): 2,
        at("b"): 2,
    }


async def test_a_batch_counts_all_its_visits(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "a", "b", "c", "d")
    answers: dict[str, Seen] = {
        at(""): read("Root"),
        at("a"): read("Page a"),
        at("b"): Gone(),
        at("c"): Refused(outcome=Outcome.BLOCKED_ROBOTS, reason="robots.txt line 1"),
        at("d"): Failed(outcome=Outcome.TIMEOUT, reason="no answer"),
    }
    await crawler.commit(*[crawler.visit(claim, answers[claim.page.url]) for claim in await crawler.claim()])
    counts = (await crawler.reload()).counts
    expected = {"checked": 5, "new": 2, "dead": 1, "refused": 1, "failed": 1, "chunks_made": 2}
    assert {key: counts[key] for key in expected} == expected


async def test_an_empty_commit_is_no_error(crawler: ManualCrawler) -> None:
    await crawler.begin()
    assert await crawler.commit() == []


async def test_A17_a_page_that_moved_points_on_and_its_target_takes_its_place(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    moved = Moved(to=at("new"))
    seen = await crawler.crawl({**SITE, "a": moved, "new": read("Apples grow here", "b", title="Apples")})
    assert at("new") in seen
    old, new = await crawler.page("a"), await crawler.page("new")
    assert (old.status, old.moved_to, old.content_hash) == (PageStatus.REDIRECT, at("new"), None)
    assert (new.status, new.depth) == (PageStatus.ACTIVE, old.depth)
    assert [hit.url for hit in await search(crawler.store, "apples")] == [at("new")]
    kinds = {change.url: (change.kind, change.moved_to) for change in await crawler.changes(run=crawler.run.id)}
    assert kinds == {at("a"): (ChangeKind.MOVED, at("new")), at("new"): (ChangeKind.NEW, None)}


def test_the_manual_crawler_cuts_paragraphs_into_chunks() -> None:
    """What the counts of these tests rest upon."""
    assert [chunk.content for chunk in chunks_of(read("One\n\nTwo").document)] == ["One", "Two"]
