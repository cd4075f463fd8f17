"""Pages of which a listing tells all: what they are compared with, and what is stamped unchanged."""

from dataclasses import replace

from tests.contract.desk import Desk, at, read

from afresh.core.ending import Ending
from afresh.core.looks import Failed, Gone, Outcome, Refused, Seen, Validators
from afresh.core.model import Listed, RunMode, RunState

SITE: dict[str, Seen] = {"": read("Root", "a", "b"), "a": read("Page a", etag='"1"'), "b": read("Page b")}


async def test_the_record_tells_validators_and_whether_a_page_was_read_well(desk: Desk) -> None:
    broken = Failed(outcome=Outcome.FAILED, reason="no answer")
    await desk.crawl({**SITE, "b": broken})
    record = {page.url: page for page in await desk.store.on_record(desk.source.id, "r1")}
    assert record[at("a")].validators == Validators(etag='"1"')
    assert record[at("a")].sound
    assert not record[at("b")].sound
    assert [item.url for item in await desk.store.unsound(desk.source.id, "r1")] == [at("b")]
    everything = {item.url for item in await desk.store.unsound(desk.source.id, "another recipe")}
    assert everything == {at(""), at("a"), at("b")}


async def test_a_listing_that_names_more_than_the_root_is_remembered(desk: Desk) -> None:
    await desk.crawl(SITE)
    told = []
    for paths in ((), ("",), ("", "a"), ("",)):
        await desk.store.record_listing(desk.source.id, [Listed(at(path), 0) for path in paths])
        told.append(await desk.store.lists_pages(desk.source.id))
    assert told == [False, False, True, False]


async def test_a_page_that_cannot_be_read_is_left_alone_while_its_validators_hold(desk: Desk) -> None:
    marks = Validators(size=7, mtime_ns=5)
    binary = Refused(outcome=Outcome.FAILED, reason="binary data", validators=marks)
    await desk.crawl({**SITE, "b": binary})
    (page,) = [page for page in await desk.store.on_record(desk.source.id, "r1") if page.url == at("b")]
    assert page.sound
    assert page.validators == marks
    assert await desk.store.unsound(desk.source.id, "r1") == []


async def test_unchanged_pages_are_stamped_all_at_once_and_counted_once(desk: Desk) -> None:
    await desk.crawl(SITE)
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    await desk.enqueue("a")
    for expected in (2, 0):  # a run that goes on after an interruption stamps nothing twice
        assert await desk.store.believe_listing(desk.run, desk.clock()) == expected
    run = await desk.store.run_by_id(desk.run.id)
    assert run is not None
    told = {name: run.counts[name] for name in ("checked", "not_modified", "known_asked")}
    assert told == {"checked": 2, "not_modified": 2, "known_asked": 2}
    checked = {page.url: page.checked_at for page in await desk.store.pages(desk.source.id)}
    assert checked[at("b")] == checked[at("")] == desk.clock()
    assert checked[at("a")] != desk.clock()


async def test_pages_of_which_the_listing_says_nothing_are_not_stamped(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.begin(RunMode.REFRESH)
    others = [page.id for page in await desk.store.on_record(desk.source.id, "r1") if page.url != at("b")]
    assert await desk.store.believe_listing(desk.run, desk.clock(), others) == 1


async def test_a_mark_is_kept_with_the_end_of_a_run_and_forgotten_on_demand(desk: Desk) -> None:
    await desk.begin(RunMode.REFRESH)
    run = await desk.store.run_by_id(desk.run.id)
    assert run is not None
    ending = Ending(state=RunState.COMPLETED, counts={}, mark="commit 7")
    await desk.store.finish_run(run, ending, desk.clock())
    assert await _mark(desk) == "commit 7"
    await desk.begin(RunMode.REFRESH)
    run = await desk.store.run_by_id(desk.run.id)
    assert run is not None
    await desk.store.finish_run(run, replace(ending, mark=None), desk.clock())
    assert await _mark(desk) == "commit 7"
    await desk.store.forget_mark(desk.source.id)
    assert await _mark(desk) is None


async def _mark(desk: Desk) -> str | None:
    source = await desk.store.source_by_id(desk.source.id)
    assert source is not None
    return source.mark


async def test_a_source_as_it_was_is_noted_once_and_its_pages_show_it(desk: Desk) -> None:
    await desk.crawl(SITE)
    every = [Listed(at(path)) for path in ("", "a", "b")]
    await desk.store.record_listing(desk.source.id, every)
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    await desk.enqueue("a")
    for _ in range(2):  # a run that goes on after an interruption counts nothing twice
        await desk.store.tell_unchanged(desk.run, desk.clock())
    run = await desk.store.run_by_id(desk.run.id)
    assert run is not None
    assert (run.counts["checked"], run.counts["not_modified"]) == (2, 2)
    views = {page.url: page for page in await desk.store.pages(desk.source.id)}
    assert views[at("b")].checked_at == desk.clock()
    assert views[at("b")].crawl_time == views[at("b")].last_seen == desk.run.started_at
    found = await desk.store.find_pages(at("b"), desk.source.id)
    assert found[0][1].checked_at == desk.clock()
    seen = await desk.store.source_view(desk.source)
    assert seen.oldest_check is not None


async def test_pages_are_found_by_their_address_or_that_of_a_folder_above(desk: Desk) -> None:
    pages = ("dir/x", "dir/sub/y", "dir", "dir0", "dir-old/z", "dir.md")
    await desk.crawl({"": read("Root", *pages), **{path: read(f"Page {path}") for path in pages}})
    found = await desk.store.on_record_at(desk.source.id, [at("dir"), at("dir/x"), at("nowhere")])
    assert found == [Listed(at("dir"), 1), Listed(at("dir/sub/y"), 1), Listed(at("dir/x"), 1)]
    assert await desk.store.on_record_at(desk.source.id, []) == []
    assert await desk.store.on_record_at(desk.source.id, [at("di")]) == []


async def test_a_page_that_is_gone_is_not_on_record(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.crawl({**SITE, "b": Gone()}, RunMode.REFRESH)
    assert await desk.store.on_record_at(desk.source.id, [at("a"), at("b")]) == [Listed(at("a"), 1)]
