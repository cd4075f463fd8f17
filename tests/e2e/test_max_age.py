"""`search --max-age`: the pages of the hits are looked at again before the answer, and nothing else is."""

import asyncio
import json
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened, rows
from tests.e2e.program import Program, ended
from tests.e2e.sites import lay, looks, page, star, word

from afresh.cli import main
from afresh.events import Event
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, TinySite

HOUR = timedelta(hours=1)
ONCE = {"policy.retries": 0}  # a clock that stands still waits for no second try
SCHEDULE = {**ONCE, "policy.schedule": "0 4 * * *", "policy.time_zone": "UTC"}


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


async def crawled(kb: KnowledgeBase, tiny: TinySite, clock: FrozenClock, number: int = 12) -> None:
    """A source that was looked at two hours ago."""
    lay(tiny, star(number))
    await kb.runs.crawl(tiny.url, name="docs")
    clock.advance(7200)
    tiny.requests.clear()


async def urls(kb: KnowledgeBase, query: str, **more: object) -> list[str]:
    answer = await kb.search.search(query, mode="text", max_age=HOUR, **more)  # type: ignore[arg-type]
    assert answer.notes == ()
    return [hit.url for hit in answer.hits]


async def test_only_the_hits_are_asked_for_and_conditionally(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        before = await kb.sources.view("docs")
        assert set(await urls(kb, f"{word('/p3')} {word('/p7')}")) == {tiny.at("/p3"), tiny.at("/p7")}
        assert looks(tiny) == {"/p3": 1, "/p7": 1}
        asked = [each for each in tiny.requests if each.path in ("/p3", "/p7")]
        assert all(each.if_none_match and each.status == 304 for each in asked)
        tiny.requests.clear()
        assert await urls(kb, word("/p3")) == [tiny.at("/p3")]
        assert looks(tiny) == {}, "it was looked at a moment ago"
        after = await kb.sources.view("docs")
        assert (after.crawl_time, after.last_run) == (before.crawl_time, before.last_run)
        assert (await kb.status.get()).runs == ()
    assert_sound(store)


async def test_what_changed_is_answered_as_it_is_now(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.put("/p3", page("/p3", ["/"], f"{word('/p3')} is now a zebra."))
        answer = await kb.search.search(word("/p3"), max_age=HOUR)
        assert "is now a zebra" in answer.hits[0].text.replace("\x02", "").replace("\x03", "")
        assert (answer.hits[0].checked_at, answer.hits[0].changed_at) == (clock(), clock())
        tiny.put("/p3", page("/p3", ["/"], "Of other things."))
        clock.advance(7200)
        assert await urls(kb, word("/p3")) == [], "it holds the word no more"
        [change] = [each for each in await kb.pages.changes("docs") if each.kind == "changed"][:1]
        assert change.url == tiny.at("/p3")


async def test_a_page_that_is_gone_is_dropped_if_the_site_is_well(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.delete("/p3")
        assert await urls(kb, word("/p3")) == []
        assert looks(tiny) == {"/p3": 1, "/": 1}, "the root tells whether the site is well"
        clock.advance(7200)
        tiny.delete("/p4")
        tiny.fail("/", 503)
        answer = await kb.search.search(word("/p4"), mode="text", max_age=HOUR)
        assert [hit.url for hit in answer.hits] == [tiny.at("/p4")]
        assert "docs, checked again: the start page could not be read" in answer.notes[0]
    assert_sound(store)


async def test_new_links_wait_for_the_next_refresh_which_follows_them(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.put("/p3", page("/p3", ["/", "/fresh"], f"{word('/p3')} links on."))
        lay(tiny, {"/fresh": ["/fresher"], "/fresher": []})
        await urls(kb, word("/p3"))
        assert looks(tiny) == {"/p3": 1}
        assert await urls(kb, word("/fresh")) == []
        [report] = await kb.runs.refresh(["docs"])
        assert (report.new, report.state) == (2, "completed")
        assert await urls(kb, word("/fresher")) == [tiny.at("/fresher")]
        assert (await kb.sources.plan("docs")).notes == ()


async def test_new_links_are_followed_by_a_due_run_too(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.put("/p3", page("/p3", ["/", "/fresh"], f"{word('/p3')} links on."))
        lay(tiny, {"/fresh": []})
        await urls(kb, word("/p3"))
        [report] = await kb.runs.refresh(["docs"], due=True)
        assert report.new == 1
        assert "/p5" not in looks(tiny), "what is not due is not looked at"


async def test_a_site_that_is_down_is_noted_and_the_old_answer_given(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.down()
        answer = await kb.search.search(word("/p3"), mode="text", max_age=HOUR)
        assert [hit.url for hit in answer.hits] == [tiny.at("/p3")]
        assert answer.notes[0].startswith("docs, checked again: ")
        assert answer.hits[0].checked_at == clock() - timedelta(seconds=7200), "a failed check does not count"
        assert (await kb.pages.open(tiny.at("/p3"))).checked_at == answer.hits[0].checked_at
        assert not (await kb.search.search(word("/p3"), mode="text", checked_within=HOUR)).hits
        tiny.up()
        assert await urls(kb, word("/p3")) == [tiny.at("/p3")]


async def test_a_run_of_another_process_or_one_that_waits_is_not_disturbed(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb, opened(store, ONCE, clock=clock) as other:
        await crawled(kb, tiny, clock)
        gate = tiny.hold("/p5")
        run = asyncio.create_task(other.runs.refresh(["docs"]))
        await asyncio.to_thread(gate.wait)
        answer = await kb.search.search(word("/p5"), mode="text", max_age=HOUR)
        assert [hit.url for hit in answer.hits] == [tiny.at("/p5")]
        assert "docs was not checked again: run 2 of docs is already in progress" in answer.notes[0]
        other.stop()
        tiny.release("/p5")
        [report] = await run
        assert report.state in ("cancelled", "completed")
        if report.state == "cancelled":
            clock.advance(7200)
            answer = await kb.search.search(word("/p5"), mode="text", max_age=HOUR)
            assert "was interrupted; `afresh refresh` continues it" in answer.notes[0]
    async with opened(store, ONCE, clock=clock) as kb:
        assert [each.state for each in await kb.runs.refresh(["docs"])] == ["completed"]


async def test_a_run_that_waits_for_a_confirmation_waits_on(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock, 30)
        for number in range(10, 30):
            tiny.delete(f"/p{number}")
        [held] = await kb.runs.refresh(["docs"])
        assert (held.state, held.held) == ("needs_confirmation", 20)
        clock.advance(7200)
        assert await urls(kb, word("/p3")) == [tiny.at("/p3")]
        clock.advance(7200)
        tiny.delete("/p4")
        assert await urls(kb, word("/p4")) == []
        assert [each.run for each in (await kb.status.get()).runs] == [held.run]
        assert (await kb.runs.confirm(held.run)).deleted == 20


async def test_a_check_does_not_count_for_a_schedule(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, SCHEDULE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        slot = (await kb.sources.view("docs")).next_time
        assert slot is not None
        clock.advance((slot - clock()).total_seconds() + 60)
        await urls(kb, word("/p3"))
        assert (await kb.sources.view("docs")).next_time == slot
        assert len(await kb.runs.refresh(due=True)) == 1
        assert (await kb.sources.plan("docs")).last_run_bytes == 0 or (await kb.sources.view("docs")).last_mode == "due"


async def test_hits_of_several_sources_are_looked_at_each_in_theirs(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        with TinySite() as second:
            lay(second, star(3))
            await kb.runs.crawl(second.url, name="other")
            await crawled(kb, tiny, clock)
            second.requests.clear()
            second.down()
            answer = await kb.search.search(word("/p1"), mode="text", max_age=HOUR)
            assert {hit.source for hit in answer.hits} == {"docs", "other"}
            assert len(answer.notes) == 1
            assert answer.notes[0].startswith("other, checked again: ")
            assert looks(tiny) == {"/p1": 1}
            second.up()
            await urls(kb, word("/p1"), within=["other"])
            assert looks(second) == {"/p1": 1}
            assert looks(tiny) == {"/p1": 1}


async def test_a_stop_ends_the_looking_and_the_answer_comes_as_it_is(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.worker.STOP_GRACE_SECONDS", 0.1)
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.hold("/p3")

        def stop(event: Event) -> None:
            kb.stop()

        answer = await asyncio.wait_for(
            kb.search.search(f"{word('/p3')} {word('/p4')}", mode="text", max_age=HOUR, listener=stop), 20
        )
        assert {hit.url for hit in answer.hits} == {tiny.at("/p3"), tiny.at("/p4")}
        assert answer.notes == ("docs, checked again: stopped",)
        tiny.release("/p3")
        status = await kb.status.get()
        assert status.runs == (), "nothing waits to be resumed"
    async with opened(store, ONCE, clock=clock) as kb:
        [report] = await kb.runs.refresh(["docs"])
        assert (report.state, report.not_modified) == ("completed", 13)
    assert_sound(store)


def test_P12_ctrl_c_while_hits_are_looked_at_gives_the_old_answer(store: Path, tiny: TinySite) -> None:
    lay(tiny, star(3))
    program = Program(store, in_process=True, grace=0.2)
    assert program.run("crawl", tiny.url, "--name", "docs").code == 0
    gate = tiny.hold("/p1")
    process = program.start("search", word("/p1"), "--mode", "text", "--max-age", "0s", "--json")
    gate.wait()
    process.send_signal(signal.SIGINT)
    result = ended(process)
    tiny.release("/p1")
    assert [hit["url"] for hit in result.report] == [tiny.at("/p1")]
    assert "note: docs, checked again: stopped" in result.err
    assert rows(store, "select mode, state from runs order by id desc limit 1") == [("check", "partial")]
    last = program.run("refresh", "docs", "--json")
    assert (last.code, last.report["state"]) == (0, "completed")
    assert_sound(store)


async def test_a_page_that_moved_stays_until_a_run_has_read_where_it_went(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock)
        tiny.put("/q3", page("/q3", ["/"], word("/p3")))
        tiny.redirect("/p3", "/q3", status=301)
        assert await urls(kb, word("/p3")) == [tiny.at("/p3")], "its content is still the best there is"
        assert "/q3" not in looks(tiny)
        await kb.runs.refresh(["docs"])
        assert await urls(kb, word("/p3")) == [tiny.at("/q3")]
    assert_sound(store)


async def test_pages_that_are_gone_and_held_by_the_brake_are_reported(
    store: Path, tiny: TinySite, work: type[InProcess], clock: FrozenClock
) -> None:
    async with opened(store, ONCE, clock=clock) as kb:
        await crawled(kb, tiny, clock, 14)
        for number in range(1, 13):
            tiny.gone(f"/p{number}")
        query = " ".join(word(f"/p{number}") for number in range(1, 13))
        answer = await kb.search.search(query, mode="text", max_age=HOUR, limit=20)
        assert any("12 pages are gone, but kept until `afresh confirm" in note for note in answer.notes)


def test_U4_checks_are_listed_among_the_runs(
    store: Path, tiny: TinySite, work: type[InProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    lay(tiny, star(3))
    flags = ["--json", "--config", str(Program(store, in_process=True).file)]
    assert main(["crawl", tiny.url, "--name", "docs", *flags]) == 0
    assert main(["search", word("/p1"), "--mode", "text", "--max-age", "0s", *flags]) == 0
    for words in (["runs"], ["runs", "docs"]):
        capsys.readouterr()
        assert main([*words, *flags]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [(run["mode"], run["state"], run["checked"]) for run in found] == [
            ("check", "completed", 1),
            ("crawl", "completed", 4),
        ]
    assert main([*words, *flags[1:]]) == 0
    assert "check" in capsys.readouterr().out
