"""Pages of which a listing tells all: what they are compared with, and what is stamped unchanged."""

from dataclasses import replace

from tests.store.desk import Desk, at, read

from afresh.crawl.judge import RunEnding
from afresh.model.fetch import Failed, Gone, Outcome, Refused, Seen, Validators
from afresh.model.records import ListedUrl, RunMode, RunState
from afresh.model.retention import Prunable

SITE: dict[str, Seen] = {"": read("Root", "a", "b"), "a": read("Page a", etag='"1"'), "b": read("Page b")}


async def test_the_record_tells_validators_and_whether_a_page_was_read_well(desk: Desk) -> None:
    broken = Failed(outcome=Outcome.FAILED, reason="no answer")
    await desk.crawl({**SITE, "b": broken})
    record = {page.url: page for page in await desk.store.listings.on_record(desk.source.id, "r1")}
    assert record[at("a")].validators == Validators(etag='"1"')
    assert record[at("a")].sound
    assert not record[at("b")].sound
    assert [item.url for item in await desk.store.listings.unsound(desk.source.id, "r1")] == [at("b")]
    everything = {item.url for item in await desk.store.listings.unsound(desk.source.id, "another recipe")}
    assert everything == {at(""), at("a"), at("b")}


async def test_a_listing_that_names_more_than_the_root_is_remembered(desk: Desk) -> None:
    await desk.crawl(SITE)
    told = []
    for paths in ((), ("",), ("", "a"), ("",)):
        await desk.store.listings.record(desk.source.id, [ListedUrl(at(path), 0) for path in paths])
        told.append(await desk.store.listings.lists_pages(desk.source.id))
    assert told == [False, False, True, False]


async def test_a_page_that_cannot_be_read_is_left_alone_while_its_validators_hold(desk: Desk) -> None:
    marks = Validators(size=7, mtime_ns=5)
    binary = Refused(outcome=Outcome.FAILED, reason="binary data", validators=marks)
    await desk.crawl({**SITE, "b": binary})
    (page,) = [
        page for page in await desk.store.listings.on_record(desk.source.id, "r1") if page.url == at("b")
    ]
    assert page.sound
    assert page.validators == marks
    assert await desk.store.listings.unsound(desk.source.id, "r1") == []


async def test_unchanged_pages_are_stamped_all_at_once_and_counted_once(desk: Desk) -> None:
    await desk.crawl(SITE)
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    await desk.enqueue("a")
    for expected in (2, 0):  # a run that goes on after an interruption stamps nothing twice
        assert await desk.store.listings.believe(desk.run, desk.clock()) == expected
    run = await desk.store.runs.get(desk.run.id)
    assert run is not None
    told = {name: run.counts[name] for name in ("checked", "not_modified", "known_asked")}
    assert told == {"checked": 2, "not_modified": 2, "known_asked": 2}
    checked = {page.url: page.checked_at for page in await desk.store.pages.of_source(desk.source.id)}
    assert checked[at("b")] == checked[at("")] == desk.clock()
    assert checked[at("a")] != desk.clock()


async def test_pages_of_which_the_listing_says_nothing_are_not_stamped(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.begin(RunMode.REFRESH)
    others = [
        page.id for page in await desk.store.listings.on_record(desk.source.id, "r1") if page.url != at("b")
    ]
    assert await desk.store.listings.believe(desk.run, desk.clock(), others) == 1


async def test_a_mark_is_kept_with_the_end_of_a_run_and_forgotten_on_demand(desk: Desk) -> None:
    await desk.begin(RunMode.REFRESH)
    run = await desk.store.runs.get(desk.run.id)
    assert run is not None
    ending = RunEnding(state=RunState.COMPLETED, counts={}, mark="commit 7")
    await desk.store.runs.finish(run, ending, desk.clock())
    assert await _mark(desk) == "commit 7"
    await desk.begin(RunMode.REFRESH)
    run = await desk.store.runs.get(desk.run.id)
    assert run is not None
    await desk.store.runs.finish(run, replace(ending, mark=None), desk.clock())
    assert await _mark(desk) == "commit 7"
    await desk.store.sources.forget_mark(desk.source.id)
    assert await _mark(desk) is None


async def _mark(desk: Desk) -> str | None:
    source = await desk.store.sources.get(desk.source.id)
    assert source is not None
    return source.mark


async def test_a_source_as_it_was_is_noted_once_and_its_pages_show_it(desk: Desk) -> None:
    await desk.crawl(SITE)
    every = [ListedUrl(at(path)) for path in ("", "a", "b")]
    await desk.store.listings.record(desk.source.id, every)
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    await desk.enqueue("a")
    for _ in range(2):  # a run that goes on after an interruption counts nothing twice
        await desk.store.listings.record_unchanged(desk.run, desk.clock())
    run = await desk.store.runs.get(desk.run.id)
    assert run is not None
    assert (run.counts["checked"], run.counts["not_modified"]) == (2, 2)
    views = {page.url: page for page in await desk.store.pages.of_source(desk.source.id)}
    assert views[at("b")].checked_at == desk.clock()
    assert views[at("b")].crawl_time == views[at("b")].last_seen == desk.run.started_at
    found = await desk.store.pages.find(at("b"), desk.source.id)
    assert found[0][1].checked_at == desk.clock()
    seen = await desk.store.stats.source_view(desk.source)
    assert seen.oldest_check is not None


async def test_pages_are_found_by_their_address_or_that_of_a_folder_above(desk: Desk) -> None:
    pages = ("dir/x", "dir/sub/y", "dir", "dir0", "dir-old/z", "dir.md")
    await desk.crawl({"": read("Root", *pages), **{path: read(f"Page {path}") for path in pages}})
    found = await desk.store.listings.on_record_at(desk.source.id, [at("dir"), at("dir/x"), at("nowhere")])
    assert found == [ListedUrl(at("dir"), 1), ListedUrl(at("dir/sub/y"), 1), ListedUrl(at("dir/x"), 1)]
    assert await desk.store.listings.on_record_at(desk.source.id, []) == []
    assert await desk.store.listings.on_record_at(desk.source.id, [at("di")]) == []


async def test_a_page_that_is_gone_is_not_on_record(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.crawl({**SITE, "b": Gone()}, RunMode.REFRESH)
    assert await desk.store.listings.on_record_at(desk.source.id, [at("a"), at("b")]) == [
        ListedUrl(at("a"), 1)
    ]


# ---- the attempt of a listing


async def listed_again(desk: Desk, *queued: str) -> None:
    """A run in which a listing shows all pages but those queued to be as they were."""
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    if queued:
        await desk.enqueue(*queued)
    await desk.store.listings.believe(desk.run, desk.clock())
    await desk.look(SITE)
    await desk.finish()


async def outcomes(desk: Desk, path: str) -> list[tuple[int | None, Outcome | None, bool]]:
    """The history of a path that is over: run, outcome, and whether a listing stands for it."""
    done = [each for each in await desk.attempts(path) if each.outcome is not None]
    return [(each.run_id, each.outcome, each.unchanged is not None) for each in done]


async def test_R10_G4_one_attempt_of_the_listing_stands_for_the_pages_it_shows_unchanged(desk: Desk) -> None:
    await desk.crawl(SITE)
    first = desk.run.id
    await listed_again(desk, "a")
    again = desk.run.id
    [*_, row] = await desk.store.history.attempts_of_run(again, limit=9)
    assert (row.url, row.page_id, row.run_id, row.unchanged) == (desk.source.url, None, again, 2)
    assert (row.outcome, row.completed_at) == (Outcome.NOT_MODIFIED, desk.clock())
    assert row.reason == "the listing shows 2 pages unchanged"
    assert len(await desk.store.history.attempts_of_run(again, limit=9)) == 2, (
        "one for page a, one for the rest"
    )
    proven = [(first, Outcome.SUCCESS, False), (again, Outcome.NOT_MODIFIED, True)]
    assert await outcomes(desk, "b") == await outcomes(desk, "") == proven
    assert await outcomes(desk, "a") == [(first, Outcome.SUCCESS, False), (again, Outcome.SUCCESS, False)]
    page = await desk.page("b")
    latest, _, _, number = await desk.store.history.evidence(page)
    assert latest is not None
    assert latest.reason == f"unchanged by the listing of {desk.source.url}, run {again}"
    assert (latest.id, number) == (row.id, 2)
    newest = (await desk.store.history.attempts(page.id, limit=1))[0]
    if newest.outcome is None:  # the next look waits
        newest = (await desk.store.history.attempts(page.id, below=newest.id, limit=1))[0]
    parts = [newest, *await desk.store.history.attempts(page.id, below=newest.id, limit=9)]
    told = [each for each in await desk.store.history.of_page(page.id) if each.outcome is not None]
    assert [each for each in parts if each.outcome is not None] == told


async def test_R10_a_listing_that_shows_nothing_unchanged_has_no_attempt(desk: Desk) -> None:
    await desk.crawl(SITE)
    await listed_again(desk, "", "a", "b")
    assert {each.unchanged for each in await desk.store.history.attempts_of_run(desk.run.id, limit=9)} == {
        None
    }


async def test_R10_a_run_that_goes_on_keeps_one_attempt_for_its_listing(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.begin(RunMode.REFRESH)
    others = [(await desk.page("b")).id]
    await desk.store.listings.believe(desk.run, desk.clock(), others)
    await desk.store.listings.believe(desk.run, desk.clock())
    [row] = await desk.store.history.attempts_of_run(desk.run.id, limit=9)
    assert (row.unchanged, row.reason) == (3, "the listing shows 3 pages unchanged")
    assert [listing for _, _, listing in await outcomes(desk, "b")] == [False, True]


async def test_R10_a_source_as_it_was_has_one_attempt_for_all_its_pages(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.store.listings.record(desk.source.id, [ListedUrl(at(path)) for path in ("", "a", "b")])
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    for _ in range(2):
        await desk.store.listings.record_unchanged(desk.run, desk.clock(), [(await desk.page("b")).id])
    [row] = await desk.store.history.attempts_of_run(desk.run.id, limit=9)
    assert (row.unchanged, row.url) == (2, desk.source.url)
    assert [listing for _, _, listing in await outcomes(desk, "a")] == [False, True]
    assert [listing for _, _, listing in await outcomes(desk, "b")] == [False], "it is asked by itself"


async def test_R10_a_listing_stands_for_no_page_that_was_not_there_or_not_read(desk: Desk) -> None:
    broken = Failed(outcome=Outcome.FAILED, reason="no answer")
    await desk.crawl({**SITE, "a": broken})
    await desk.crawl({**SITE, "": read("Root", "a"), "a": broken, "b": Gone()})
    await listed_again(desk)
    await desk.crawl({**SITE, "": read("Root", "a", "b", "c"), "c": read("Page c")})
    for path in ("a", "b", "c"):
        assert not any(listing for _, _, listing in await outcomes(desk, path)), path
    assert any(listing for _, _, listing in await outcomes(desk, ""))
    latest, *_ = await desk.store.history.evidence(await desk.page(""))
    assert latest is not None
    assert latest.run_id == desk.run.id, "its row was opened before the listing, and ended after it"
    assert [each.run_id for each in await desk.attempts("") if each.outcome] == sorted(
        each.run_id or 0 for each in await desk.attempts("") if each.outcome
    )


async def test_R10_a_listing_of_another_source_says_nothing(desk: Desk) -> None:
    await desk.crawl(SITE)
    other = await Desk.at(desk.store, desk.clock, "other")
    await other.crawl(SITE)
    await listed_again(other)
    assert not any(listing for _, _, listing in await outcomes(desk, "b"))
    assert any(listing for _, _, listing in await outcomes(other, "b"))


async def test_R10_a_page_dropped_by_hand_is_not_shown_unchanged(desk: Desk) -> None:
    await desk.crawl(SITE)
    desk.clock.advance(60)
    assert await desk.store.pages.drop((await desk.page("b")).id, desk.clock())
    await listed_again(desk)
    assert not any(listing for _, _, listing in await outcomes(desk, "b"))


async def test_R10_retention_keeps_the_newest_attempt_of_a_listing(desk: Desk) -> None:
    await desk.crawl(SITE)
    other = await Desk.at(desk.store, desk.clock, "other")
    await other.crawl(SITE)
    for each in (desk, desk, desk, other):
        await listed_again(each)
    newest = other.run.id
    desk.clock.advance(days=1)
    counted = (await desk.store.retention.count_prunable(Prunable(attempts=desk.clock()))).attempts
    removed, _ = await desk.store.retention.prune_attempts(desk.clock(), after=0, limit=999)
    assert removed == counted == 2, "those of listings with a newer one; each page keeps its latest"
    assert [listing for _, _, listing in await outcomes(desk, "b")] == [False, True]
    assert (await outcomes(other, "b"))[-1] == (newest, Outcome.NOT_MODIFIED, True)
