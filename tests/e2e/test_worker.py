"""`afresh worker`: runs that wait in the store, taken up, shared, handed over and taken over."""

import asyncio
import signal
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened
from tests.e2e.program import Program, ended
from tests.e2e.sites import SERVICE, BusySite, lay, looks, star
from tests.postgres import Postgres, mortal

from afresh.events import Event, Notice, PageStep
from afresh.kb import KnowledgeBase
from afresh.model.reports import RunReport
from afresh.store.queue import QueueRepository

SOON = 10.0  # seconds that a worker has to leave
STORES = pytest.mark.parametrize("dialect", ["sqlite", "postgres"])


async def place(dialect: str, store: Path, postgres: Postgres) -> str:
    """The address of an empty store."""
    return f"sqlite:///{store}" if dialect == "sqlite" else await postgres.emptied()


@asynccontextmanager
async def looking(store: Path, url: str) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base beside the workers."""
    async with opened(store, {"store.url": url}) as kb:
        yield kb


async def until(kb: KnowledgeBase, state: str) -> None:
    """Wait for the state of the only source's last run."""
    while (await kb.sources.view("docs")).last_state != state:  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.02)


async def reported(kb: KnowledgeBase) -> dict[str, Any]:
    """What is on record: addresses with their content, and that nothing is held."""
    status = await kb.status.get()
    assert (status.in_flight, status.pending, status.runs, status.workers) == (0, 0, (), ())
    pages = await kb.pages.of_source("docs")
    assert len(pages) == len({page.url for page in pages})
    return {page.url: page.content_hash for page in pages}


def leave(process: subprocess.Popen[str]) -> str:
    """Tell a worker to go; what it had said."""
    process.send_signal(signal.SIGTERM)
    asked_at = time.monotonic()
    left = ended(process)
    assert time.monotonic() - asked_at < SOON
    assert left.code == 0, left
    return left.out


async def test_a_queued_run_waits_is_displayed_and_is_worked_on_once(store: Path) -> None:
    program = Program(store, in_process=True)
    with BusySite() as site:
        lay(site, star(20))
        queued = program.run("crawl", site.url, "--name", "docs", "--detach")
        assert (queued.code, "queued as run 1" in queued.out) == (0, True), queued
        assert looks(site) == {}
        status = program.run("status", "--json").report
        assert [(run["run"], run["state"]) for run in status["runs"]] == [(1, "queued")]
        first = program.run("worker", "--once", "--json")
        assert (first.code, first.report["state"], first.report["new"]) == (0, "completed", 21), first
        assert set(looks(site).values()) == {1}
        async with looking(store, f"sqlite:///{store}") as kb:
            again = [await kb.runs.refresh(["docs"], queue=True) for _ in range(2)]
            assert [(each.run, each.state) for [each] in again] == [(2, "queued")] * 2
    assert_sound(store)


class Noted:
    """What one worker wrote."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def receive(self, event: Event) -> None:
        """Note a page that was written."""
        if isinstance(event, PageStep) and event.name == "commit":
            self.urls.append(event.url)


@STORES
async def test_B21_two_workers_share_a_run_page_by_page(
    dialect: str, store: Path, postgres: Postgres, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await place(dialect, store, postgres)
    first, second, ends = Noted(), Noted(), list[RunReport]()
    with BusySite() as site, BusySite() as other:
        there = [other.at(path) for path in star(29)]
        lay(site, {**star(30), "/": [*star(30), *there]})
        lay(other, star(29))
        paths = ("/p0", "/p1", "/p2")  # as many as are asked for at a time
        held = [host.hold(path) for host in (site, other) for path in paths]
        async with looking(store, url) as one, looking(store, url) as two:
            asked = ask_noted(two, monkeypatch)
            await one.runs.crawl(site.url, name="docs", rules={"scope": "domain"}, queue=True)
            leading = asyncio.create_task(one.runs.work(once=True, listener=first.receive, on_report=ends.append))
            await held[0].arrived()
            await held[len(paths)].arrived()  # of the leader's only host, the second worker would get no share
            helping = asyncio.create_task(two.runs.work(once=True, listener=second.receive, on_report=ends.append))
            await asyncio.wait_for(asked.wait(), 30)
            for each in held:
                each.release()
            assert await leading
            assert await helping
            assert [(end.state, end.new) for end in ends] == [("completed", 61)]
            assert len(await reported(one)) == 61
        assert sorted(first.urls + second.urls) == sorted([*looks_at(site), *looks_at(other)])
        assert first.urls
        assert second.urls
        for host in (site, other):
            assert set(looks(host).values()) == {1}
            assert len([path for path in host.fullest if path not in SERVICE]) <= 3, host.fullest


def ask_noted(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Tells when a knowledge base has asked for work."""
    asked, claim = asyncio.Event(), QueueRepository.claim
    db = kb._context.store.db

    async def noted(queue: QueueRepository, *args: Any, **more: Any) -> Any:
        claims = await claim(queue, *args, **more)
        if queue.db is db:
            asked.set()
        return claims

    monkeypatch.setattr(QueueRepository, "claim", noted)
    return asked


def looks_at(site: BusySite) -> Sequence[str]:
    """The addresses of the pages that were asked for."""
    return [site.at(path) for path in looks(site)]


async def test_P12_a_stopped_worker_hands_its_run_over(store: Path) -> None:
    url = f"sqlite:///{store}"
    program = Program(store, in_process=True, url=url, grace=2.0)
    with BusySite() as site:
        lay(site, star(30))
        held = site.hold("/p7")
        async with looking(store, url) as kb:
            await kb.runs.crawl(site.url, name="docs", queue=True)
            first = program.start("worker")
            await held.arrived(timeout=60)
            status = await kb.status.get()
            while status.hosts[0].held != status.workers[0].held:  # counted one after the other
                status = await kb.status.get()
            [worker] = status.workers
            assert (worker.pid, worker.runs, worker.held > 0) == (first.pid, (1,), True)
            [host] = status.hosts
            assert host.domain in site.url
            assert leave(first) == ""
            assert [(run.run, run.state) for run in (await kb.status.get()).runs] == [(1, "queued")]
            site.release("/p7")
            second = program.start("worker", "--json")
            await until(kb, "completed")
            assert '"new":31' in leave(second).replace(" ", "")
            assert len(await reported(kb)) == 31
        asked = looks(site)
        assert asked.pop("/") == 2  # a run that goes on makes sure that the site is still well
        assert asked.pop("/p7") <= 2
        assert set(asked.values()) == {1}
    assert_sound(store)


async def test_P2_a_killed_worker_is_taken_over_by_one_that_stands_by(store: Path, postgres: Postgres) -> None:
    url = await postgres.emptied()
    program = Program(store, in_process=True, url=url)
    with BusySite() as site:
        lay(site, star(30))
        held = site.hold("/p7")
        async with looking(store, url) as kb:
            await kb.runs.crawl(site.url, name="docs", queue=True)
            victim = program.start("worker")
            await held.arrived(timeout=60)
            heir = program.start("worker", "--json")
            victim.kill()
            victim.communicate()
            site.release("/p7")
            await until(kb, "completed")
            assert leave(heir)
            assert len(await reported(kb)) == 31


@STORES
async def test_U4_P2_F151_a_run_whose_leader_is_killed_is_never_displayed_as_cancelled_while_another_helps(
    dialect: str, store: Path, postgres: Postgres, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, ends, seen = await place(dialect, store, postgres), list[RunReport](), set[str]()
    program = Program(store, in_process=True, url=url)
    with BusySite() as site, BusySite() as other:
        lay(site, {**star(30), "/": [*star(30), *(other.at(path) for path in star(29))]})
        lay(other, star(29))
        held = [host.hold(path) for host in (site, other) for path in ("/p0", "/p1", "/p2")]
        async with looking(store, url) as kb, looking(store, url) as helper:
            number = (await kb.runs.crawl(site.url, name="docs", rules={"scope": "domain"}, queue=True)).run
            leader = program.start("worker")
            await held[0].arrived(timeout=60)
            asked = ask_noted(helper, monkeypatch)
            helping = asyncio.create_task(helper.runs.work(once=True, on_report=ends.append))
            await asyncio.wait_for(asked.wait(), 30)
            before = (await kb.runs.get(number)).seconds
            leader.kill()
            leader.communicate()
            displayed = await states(kb, number)
            assert set(displayed) == {"running"}
            for each in held:
                each.release()
            while not helping.done():
                seen.update(await states(kb, number))
            assert await helping
            assert [(end.state, end.new) for end in ends] == [("completed", 61)]
            assert seen <= {"running", "completed"}
            assert (await kb.runs.get(number)).seconds >= before - 1
            assert len(await reported(kb)) == 61
    if dialect == "sqlite":
        assert_sound(store)


async def states(kb: KnowledgeBase, number: int) -> list[str]:
    """The state of a run as each list shows it, one after the other."""
    status = (await kb.status.get()).runs
    displayed = [
        (await kb.runs.records(await kb.sources.ids("docs")))[0].state,
        (await kb.runs.get(number)).state,
        (await kb.sources.view("docs")).last_state,
    ]
    return [str(state) for state in (*(run.state for run in status), *displayed)]


async def test_P10_F19_a_worker_outlives_the_restart_of_its_database(store: Path, work: type[InProcess]) -> None:
    with mortal() as (server, restart), BusySite() as site:
        lay(site, star(10))
        ends: list[RunReport] = []
        async with looking(store, server.url) as kb, looking(store, server.url) as other:
            working = asyncio.create_task(kb.runs.work(on_report=ends.append))
            while not (await other.status.get()).workers:  # noqa: ASYNC110 - until it stands by
                await asyncio.sleep(0.02)
            await asyncio.to_thread(restart, "immediate")
            await other.runs.crawl(site.url, name="docs", queue=True)
            await until(other, "completed")
            kb.stop()
            assert await working
        assert [end.new for end in ends] == [11]


async def test_stopping_a_crawl_stops_its_helpers(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{store}"
    with BusySite() as site:
        lay(site, star(40))
        held = [site.hold(path) for path in ("/p0", "/p1", "/p2")]
        async with looking(store, url) as mine, looking(store, url) as theirs:
            crawl = asyncio.create_task(mine.runs.crawl(site.url, name="docs"))
            await held[0].arrived()
            asked = ask_noted(theirs, monkeypatch)
            helping = asyncio.create_task(theirs.runs.work(once=True))
            await asyncio.wait_for(asked.wait(), 30)
            mine.stop()
            for each in held:
                each.release()
            assert (await crawl).state == "cancelled"
            assert await helping
            assert (await mine.status.get()).in_flight == 0
            assert (await mine.sources.view("docs")).last_state == "cancelled"


async def test_sources_by_name_are_left_to_others(store: Path, work: type[InProcess]) -> None:
    url, ends = f"sqlite:///{store}", list[RunReport]()
    with BusySite() as one, BusySite() as two:
        lay(one, star(3))
        lay(two, star(3))
        async with looking(store, url) as kb:
            await kb.runs.crawl(one.url, name="one", queue=True)
            await kb.runs.crawl(two.url, name="two", version="2", queue=True)
            assert await kb.runs.work(["two@2"], once=True, on_report=ends.append)
            assert [end.source for end in ends] == ["two"]
            assert looks(one) == {}


async def test_files_are_read_by_workers_that_see_them(store: Path, work: type[InProcess]) -> None:
    url, ends = f"sqlite:///{store}", list[RunReport]()
    notes = store.parent / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n\nSome words of a note.\n")
    async with looking(store, url) as kb:
        await kb.runs.crawl(str(notes), name="notes", queue=True)
        notes.rename(store.parent / "elsewhere")
        assert await kb.runs.work(once=True, on_report=ends.append)
        assert ends == []
        (store.parent / "elsewhere").rename(notes)
        assert await kb.runs.work(once=True, on_report=ends.append)
        assert [(end.state, end.new) for end in ends] == [("completed", 1)]


async def test_what_a_worker_cannot_know_is_refused(store: Path) -> None:
    program = Program(store)
    refused = program.run("refresh", "--due", "--budget", "3", "--detach")
    assert (refused.code, "does not work with --detach" in refused.err) == (2, True)


async def test_a_run_that_nobody_leads_does_not_wait_for_one_that_has_a_leader(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, ends = f"sqlite:///{store}", list[RunReport]()
    with BusySite() as large, BusySite() as small:
        lay(large, star(40))
        lay(small, star(3))
        held = [large.hold(path) for path in ("/p0", "/p1", "/p2")]
        async with looking(store, url) as mine, looking(store, url) as theirs:
            crawl = asyncio.create_task(mine.runs.crawl(large.url, name="large"))
            await held[0].arrived()
            asked = ask_noted(theirs, monkeypatch)
            helping = asyncio.create_task(theirs.runs.work(at_once=1, on_report=ends.append))
            await asyncio.wait_for(asked.wait(), 30)  # its only hand is lent
            await mine.runs.crawl(small.url, name="small", queue=True)
            while not ends:  # noqa: ASYNC110 - a run of another knowledge base
                await asyncio.sleep(0.02)
            assert [(end.source, end.state) for end in ends] == [("small", "completed")]
            theirs.stop()
            assert await helping
            for each in held:
                each.release()
            assert (await crawl).new == 41


async def test_problems_with_one_run_are_reported_and_leave_the_others_alone(
    store: Path, work: type[InProcess]
) -> None:
    url, ends, message = f"sqlite:///{store}", list[RunReport](), list[Event]()
    with BusySite() as site:
        lay(site, star(3))
        async with looking(store, url) as kb:
            await kb.runs.crawl("https://github.com/owner/repo", name="odd", queue=True)
            with closing(sqlite3.connect(store)) as connection:
                connection.execute("update sources set kind = 'of tomorrow'")
                connection.commit()
            await kb.runs.crawl(site.url, name="docs", queue=True)
            assert not await kb.runs.work(once=True, on_report=ends.append, listener=message.append)
            assert [end.source for end in ends] == ["docs"]
            [notice] = [each.text for each in message if isinstance(each, Notice)]
            assert "sources of kind of tomorrow are not supported" in notice
