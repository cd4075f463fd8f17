"""Pages of which a listing tells all: what they are compared with, and what is stamped unchanged."""

from dataclasses import replace

from tests.store.crawler import ManualCrawler, at, read

from afresh.crawl.run_verdict import RunEnding
from afresh.model.fetch import Failed, Gone, Outcome, Refused, Seen, Validators
from afresh.model.records import ListedUrl, RunMode, RunState
from afresh.model.retention import Prunable

SITE: dict[str, Seen] = {"": read("Root", "a", "b"), "a": read("Page a", etag='"1"'), "b": read("Page b")}


async def test_known_pages_have_validators_and_whether_they_were_read_well(crawler: ManualCrawler) -> None:
    broken = Failed(outcome=Outcome.FAILED, reason="no answer")
    await crawler.crawl({**SITE, "b": broken})
    record = {page.url: page for page in await crawler.store.listings.stored_pages(crawler.source.id, "r1")}
    assert record[at("a")].validators == Validators(etag='"1"')
    assert record[at("a")].sound
    assert not record[at("b")].sound
    assert [item.url for item in await crawler.store.listings.with_problems(crawler.source.id, "r1")] == [at("b")]
    everything = {item.url for item in await crawler.store.listings.with_problems(crawler.source.id, "another recipe")}
    assert everything == {at(""), at("a"), at("b")}


async def test_a_listing_that_names_more_than_the_root_is_remembered(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    found = []
    for paths in ((), ("",), ("", "a"), ("",)):
        await crawler.store.listings.record(crawler.source.id, [ListedUrl(at(path), 0) for path in paths])
        found.append(await crawler.store.listings.lists_pages(crawler.source.id))
    assert found == [False, False, True, False]


async def test_a_page_that_cannot_be_read_is_left_alone_while_its_validators_hold(crawler: ManualCrawler) -> None:
    marks = Validators(size=7, mtime_ns=5)
    binary = Refused(outcome=Outcome.FAILED, reason="binary data", validators=marks)
    await crawler.crawl({**SITE, "b": binary})
    (page,) = [
        page for page in await crawler.store.listings.stored_pages(crawler.source.id, "r1") if page.url == at("b")
    ]
    assert page.sound
    assert page.validators == marks
    assert await crawler.store.listings.with_problems(crawler.source.id, "r1") == []


async def test_unchanged_pages_are_stamped_all_at_once_and_counted_once(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("a")
    for expected in (2, 0):  # a run that goes on after an interruption stamps nothing twice
        assert await crawler.store.listings.mark_unchanged(crawler.run, crawler.clock()) == expected
    run = await crawler.store.runs.get(crawler.run.id)
    assert run is not None
    found = {name: run.counts[name] for name in ("checked", "not_modified", "known_asked")}
    assert found == {"checked": 2, "not_modified": 2, "known_asked": 2}
    checked = {page.url: page.checked_at for page in await crawler.store.pages.of_source(crawler.source.id)}
    assert checked[at("b")] == checked[at("")] == crawler.clock()
    assert checked[at("a")] != crawler.clock()


async def test_pages_of_which_the_listing_says_nothing_are_not_stamped(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.begin(RunMode.REFRESH)
    others = [
        page.id for page in await crawler.store.listings.stored_pages(crawler.source.id, "r1") if page.url != at("b")
    ]
    assert await crawler.store.listings.mark_unchanged(crawler.run, crawler.clock(), others) == 1


async def test_a_mark_is_kept_with_the_end_of_a_run_and_forgotten_on_demand(crawler: ManualCrawler) -> None:
    await crawler.begin(RunMode.REFRESH)
    run = await crawler.store.runs.get(crawler.run.id)
    assert run is not None
    ending = RunEnding(state=RunState.COMPLETED, counts={}, mark="commit 7")
    await crawler.store.runs.finish(run, ending, crawler.clock())
    assert await _mark(crawler) == "commit 7"
    await crawler.begin(RunMode.REFRESH)
    run = await crawler.store.runs.get(crawler.run.id)
    assert run is not None
    await crawler.store.runs.finish(run, replace(ending, mark=None), crawler.clock())
    assert await _mark(crawler) == "commit 7"
    await crawler.store.sources.forget_mark(crawler.source.id)
    assert await _mark(crawler) is None


async def _mark(crawler: ManualCrawler) -> str | None:
    source = await crawler.store.sources.get(crawler.source.id)
    assert source is not None
    return source.mark


async def test_a_source_as_it_was_is_noted_once_and_its_pages_show_it(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    every = [ListedUrl(at(path)) for path in ("", "a", "b")]
    await crawler.store.listings.record(crawler.source.id, every)
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("a")
    for _ in range(2):  # a run that goes on after an interruption counts nothing twice
        await crawler.store.listings.record_unchanged(crawler.run, crawler.clock())
    run = await crawler.store.runs.get(crawler.run.id)
    assert run is not None
    assert (run.counts["checked"], run.counts["not_modified"]) == (2, 2)
    views = {page.url: page for page in await crawler.store.pages.of_source(crawler.source.id)}
    assert views[at("b")].checked_at == crawler.clock()
    assert views[at("b")].crawl_time == views[at("b")].last_seen == crawler.run.started_at
    found = await crawler.store.pages.find(at("b"), crawler.source.id)
    assert found[0][1].checked_at == crawler.clock()
    seen = await crawler.store.stats.source_view(crawler.source)
    assert seen.oldest_check is not None


async def test_pages_are_found_by_their_address_or_that_of_a_folder_above(crawler: ManualCrawler) -> None:
    pages = ("dir/x", "dir/sub/y", "dir", "dir0", "dir-old/z", "dir.md")
    await crawler.crawl({"": read("Root", *pages), **{path: read(f"Page {path}") for path in pages}})
    found = await crawler.store.listings.stored_below(crawler.source.id, [at("dir"), at("dir/x"), at("nowhere")])
    assert found == [ListedUrl(at("dir"), 1), ListedUrl(at("dir/sub/y"), 1), ListedUrl(at("dir/x"), 1)]
    assert await crawler.store.listings.stored_below(crawler.source.id, []) == []
    assert await crawler.store.listings.stored_below(crawler.source.id, [at("di")]) == []


async def test_a_page_that_is_gone_is_not_on_record(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.crawl({**SITE, "b": Gone()}, RunMode.REFRESH)
    assert await crawler.store.listings.stored_below(crawler.source.id, [at("a"), at("b")]) == [ListedUrl(at("a"), 1)]


# ---- the attempt of a listing


async def listed_again(crawler: ManualCrawler, *queued: str) -> None:
    """A run in which a listing shows all pages but those queued to be as they were."""
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    if queued:
        await crawler.enqueue(*queued)
    await crawler.store.listings.mark_unchanged(crawler.run, crawler.clock())
    await crawler.look(SITE)
    await crawler.finish()


async def outcomes(crawler: ManualCrawler, path: str) -> list[tuple[int | None, Outcome | None, bool]]:
    """The history of a path that is over: run, outcome, and whether a listing stands for it."""
    done = [each for each in await crawler.attempts(path) if each.outcome is not None]
    return [(each.run_id, each.outcome, each.unchanged is not None) for each in done]


async def test_R10_G4_one_attempt_of_the_listing_stands_for_the_pages_it_shows_unchanged(
    crawler: ManualCrawler,
) -> None:
    await crawler.crawl(SITE)
    first = crawler.run.id
    await listed_again(crawler, "a")
    again = crawler.run.id
    [*_, row] = await crawler.store.history.attempts_of_run(again, limit=9)
    assert (row.url, row.page_id, row.run_id, row.unchanged) == (crawler.source.url, None, again, 2)
    assert (row.outcome, row.completed_at) == (Outcome.NOT_MODIFIED, crawler.clock())
    assert row.reason == "the listing shows 2 pages unchanged"
    assert len(await crawler.store.history.attempts_of_run(again, limit=9)) == 2, "one for page a, one for the rest"
    proven = [(first, Outcome.SUCCESS, False), (again, Outcome.NOT_MODIFIED, True)]
    assert await outcomes(crawler, "b") == await outcomes(crawler, "") == proven
    assert await outcomes(crawler, "a") == [(first, Outcome.SUCCESS, False), (again, Outcome.SUCCESS, False)]
    page = await crawler.page("b")
    latest, _, _, number = await crawler.store.history.evidence(page)
    assert latest is not None
    assert latest.reason == f"unchanged according to the listing of {crawler.source.url}, run {again}"
    assert (latest.id, number) == (row.id, 2)
    newest = (await crawler.store.history.attempts(page.id, limit=1))[0]
    if newest.outcome is None:  # the next look waits
        newest = (await crawler.store.history.attempts(page.id, below=newest.id, limit=1))[0]
    parts = [newest, *await crawler.store.history.attempts(page.id, below=newest.id, limit=9)]
    found = [each for each in await crawler.store.history.of_page(page.id) if each.outcome is not None]
    assert [each for each in parts if each.outcome is not None] == found


async def test_R10_a_listing_that_shows_nothing_unchanged_has_no_attempt(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await listed_again(crawler, "", "a", "b")
    assert {each.unchanged for each in await crawler.store.history.attempts_of_run(crawler.run.id, limit=9)} == {None}


async def test_R10_a_run_that_goes_on_keeps_one_attempt_for_its_listing(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.begin(RunMode.REFRESH)
    others = [(await crawler.page("b")).id]
    await crawler.store.listings.mark_unchanged(crawler.run, crawler.clock(), others)
    await crawler.store.listings.mark_unchanged(crawler.run, crawler.clock())
    [row] = await crawler.store.history.attempts_of_run(crawler.run.id, limit=9)
    assert (row.unchanged, row.reason) == (3, "the listing shows 3 pages unchanged")
    assert [listing for _, _, listing in await outcomes(crawler, "b")] == [False, True]


async def test_R10_a_source_as_it_was_has_one_attempt_for_all_its_pages(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.store.listings.record(crawler.source.id, [ListedUrl(at(path)) for path in ("", "a", "b")])
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    for _ in range(2):
        await crawler.store.listings.record_unchanged(crawler.run, crawler.clock(), [(await crawler.page("b")).id])
    [row] = await crawler.store.history.attempts_of_run(crawler.run.id, limit=9)
    assert (row.unchanged, row.url) == (2, crawler.source.url)
    assert [listing for _, _, listing in await outcomes(crawler, "a")] == [False, True]
    assert [listing for _, _, listing in await outcomes(crawler, "b")] == [False], "it is asked by itself"


async def test_R10_a_listing_stands_for_no_page_that_was_not_there_or_not_read(crawler: ManualCrawler) -> None:
    broken = Failed(outcome=Outcome.FAILED, reason="no answer")
    await crawler.crawl({**SITE, "a": broken})
    await crawler.crawl({**SITE, "": read("Root", "a"), "a": broken, "b": Gone()})
    await listed_again(crawler)
    await crawler.crawl({**SITE, "": read("Root", "a", "b", "c"), "c": read("Page c")})
    for path in ("a", "b", "c"):
        assert not any(listing for _, _, listing in await outcomes(crawler, path)), path
    assert any(listing for _, _, listing in await outcomes(crawler, ""))
    latest, *_ = await crawler.store.history.evidence(await crawler.page(""))
    assert latest is not None
    assert latest.run_id == crawler.run.id, "its row was opened before the listing, and ended after it"
    assert [each.run_id for each in await crawler.attempts("") if each.outcome] == sorted(
        each.run_id or 0 for each in await crawler.attempts("") if each.outcome
    )


async def test_R10_a_listing_of_another_source_says_nothing(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    await other.crawl(SITE)
    await listed_again(other)
    assert not any(listing for _, _, listing in await outcomes(crawler, "b"))
    assert any(listing for _, _, listing in await outcomes(other, "b"))


async def test_R10_a_page_dropped_by_hand_is_not_listed_as_unchanged(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.clock.advance(60)
    assert await crawler.store.pages.drop((await crawler.page("b")).id, crawler.clock())
    await listed_again(crawler)
    assert not any(listing for _, _, listing in await outcomes(crawler, "b"))


async def test_R10_retention_keeps_the_newest_attempt_of_a_listing(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    await other.crawl(SITE)
    for each in (crawler, crawler, crawler, other):
        await listed_again(each)
    newest = other.run.id
    crawler.clock.advance(days=1)
    counted = (await crawler.store.retention.count_prunable(Prunable(attempts=crawler.clock()))).attempts
    removed, _ = await crawler.store.retention.prune_attempts(crawler.clock(), after=0, limit=999)
    assert removed == counted == 2, "those of listings with a newer one; each page keeps its latest"
    assert [listing for _, _, listing in await outcomes(crawler, "b")] == [False, True]
    assert (await outcomes(other, "b"))[-1] == (newest, Outcome.NOT_MODIFIED, True)
