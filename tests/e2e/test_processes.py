"""Ctrl-C, and several processes on one store."""

import asyncio
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, index_of, opened, rows
from tests.e2e.program import Program, committed, ended
from tests.e2e.sites import SERVICE, BusySite, lay, looks, star

from afresh.testing import TinySite

SOON = 10.0  # seconds; P12 asks for 5 to let go of what is under way, the rest is the end of a process


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
async def test_F10_P12_a_stopped_crawl_says_how_to_go_on_and_goes_on(
    kind: signal.Signals, store: Path, work: type[InProcess]
) -> None:
    with BusySite() as site:
        lay(site, star(40))
        held = [f"/p{number}" for number in range(20, 40)]  # more than it looks at at once
        gates = [site.hold(path) for path in held]
        program = Program(store)
        process = program.start("crawl", site.url, "--name", "docs")
        await gates[0].arrived(timeout=60)
        process.send_signal(kind)
        asked_at = time.monotonic()
        _receive(process, "stopping")
        for path in held:
            site.release(path)
        stopped = ended(process)
        assert time.monotonic() - asked_at < SOON
        assert stopped.code == 1, stopped
        assert "cancelled" in stopped.out
        assert f"To continue, run afresh crawl {site.url} --name docs" in stopped.out
        assert rows(store, "select state from runs") == [("cancelled",)]
        assert rows(store, "select id from page_crawls where locked_by is not null") == []
        before = set(index_of(store))
        assert 0 < len(before) < 41
        last = program.run("crawl", site.url, "--name", "docs", "--json")
        assert (last.code, last.report["state"], last.report["new"]) == (0, "completed", 41), last
        assert "continuing run 1" in last.err
        asked = looks(site)
        assert asked.pop("/") == 2  # P4: a run that goes on makes sure that the site is still well
        assert set(asked.values()) == {1}  # what was under way was finished, so nothing is asked twice
        assert before < set(index_of(store))
        assert_sound(store)


async def test_P12_a_stop_does_not_wait_for_a_server_that_never_answers(store: Path) -> None:
    with TinySite() as site:
        lay(site, star(5))
        gate = site.hold("/p2")
        process = Program(store, in_process=True).start("crawl", site.url, "--name", "docs", "--json")
        await gate.arrived(timeout=60)
        process.send_signal(signal.SIGINT)
        asked_at = time.monotonic()
        stopped = ended(process)
        assert time.monotonic() - asked_at < SOON
        assert (stopped.code, stopped.report["state"]) == (1, "cancelled"), stopped
        site.release("/p2")
        assert Program(store, in_process=True).run("crawl", site.url, "--name", "docs").code == 0
    assert_sound(store)
    assert len(index_of(store)) == 6


async def test_F10_a_second_ctrl_c_quits_at_once_and_the_run_can_still_go_on(store: Path) -> None:
    with TinySite() as site:
        lay(site, star(5))
        gate = site.hold("/p2")
        process = Program(store).start("crawl", site.url, "--name", "docs")
        await gate.arrived(timeout=60)
        process.send_signal(signal.SIGINT)
        _receive(process, "stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=SOON) == 130
        process.communicate()
        site.release("/p2")
        assert Program(store, in_process=True).run("crawl", site.url, "--name", "docs").code == 0
    assert_sound(store)
    assert len(index_of(store)) == 6


async def test_a_source_that_is_being_crawled_is_refused_to_a_second_process(store: Path) -> None:
    with TinySite() as site:
        lay(site, star(5))
        gate = site.hold("/p2")
        program = Program(store, in_process=True)
        first = program.start("crawl", site.url, "--name", "docs", "--json")
        await gate.arrived(timeout=60)
        second = program.run("crawl", site.url, "--name", "docs")
        assert second.code == 1
        assert "run 1 of docs is already in progress" in second.err
        assert "Traceback" not in second.err
        assert program.run("search", "anything").code == 0  # reading goes on
        site.release("/p2")
        done = ended(first)
        assert (done.code, done.report["new"]) == (0, 6), done
    assert_sound(store)


@EVERY_STORE
async def test_P9_F113_two_sources_on_one_host_share_it_politely(store: Path, work: type[InProcess]) -> None:
    """A20, B16: two processes, one host: together never more than its three at once, and nothing is lost."""
    with BusySite(aside=SERVICE) as site:  # each process reads these files for itself (docs/howto/workers.md)
        for name in ("one", "two"):
            lay(site, {f"/{name}/": [f"/{name}/{n}" for n in range(25)]})
            lay(site, {f"/{name}/{n}": [] for n in range(25)})
        for path in site.paths:
            site.slow(path, 0.01)
        gate = site.hold("/robots.txt")
        program = Program(store, in_process=True)
        both = [program.start("crawl", site.at(f"/{n}/"), "--name", n, "--json") for n in ("one", "two")]
        await gate.arrived(2, timeout=60)
        site.release("/robots.txt")
        results = [ended(process) for process in both]
        for result in results:
            assert (result.code, result.report["new"]) == (0, 26), result
            assert "locked" not in result.err
        assert set(looks(site).values()) == {1}
        assert site.most <= 3, site.fullest
    assert_sound(store)


async def test_P9_two_sources_on_two_hosts_are_crawled_side_by_side(store: Path) -> None:
    with BusySite() as one, BusySite() as two:
        lay(one, star(25))
        lay(two, star(25))
        gates = [one.hold("/p3"), two.hold("/p3")]
        program = Program(store, in_process=True)
        both = [
            program.start("crawl", site.url, "--name", name, "--json") for site, name in ((one, "one"), (two, "two"))
        ]
        for gate in gates:  # both are in the middle of it
            await gate.arrived(timeout=60)
        one.release("/p3")
        two.release("/p3")
        for result in [ended(process) for process in both]:
            assert (result.code, result.report["new"]) == (0, 26), result
            assert "locked" not in result.err
    assert_sound(store)


async def test_F24_a_worker_that_slept_past_its_lease_writes_nothing(store: Path, work: type[InProcess]) -> None:
    """SIGSTOP for longer than the lease; another takes over; what the sleeper still had is refused."""
    with TinySite() as site:
        lay(site, star(12))
        gate = site.hold("/p5")
        sleeper = Program(store, in_process=True).start("crawl", site.url, "--name", "docs", "--json")
        await gate.arrived(timeout=60)
        while committed(store) < 12:  # noqa: ASYNC110 - then it writes no more, and holds just one page
            await asyncio.sleep(0.01)
        _put_to_sleep(sleeper, store)
        _let_the_lease_pass(store)
        site.release("/p5")
        async with opened(store, {"policy.heartbeat_seconds": 0.1}) as kb:  # it watches for 1.5 beats
            report = await kb.runs.crawl(site.url, name="docs")
        assert (report.state, report.new) == ("completed", 13)
        once = index_of(store)
        sleeper.send_signal(signal.SIGCONT)
        assert "Traceback" not in ended(sleeper).err
    assert index_of(store) == once
    assert rows(store, "select count(*) from changes where kind = 'new'") == [(13,)]
    assert_sound(store)


def _receive(process: subprocess.Popen[str], words: str) -> None:
    """Wait until a command has said something."""
    assert process.stderr is not None
    while words not in process.stderr.readline():
        assert process.poll() is None


def _put_to_sleep(process: subprocess.Popen[str], store: Path) -> None:
    """Stop a process, but not in the middle of a transaction: nobody could write behind it."""
    while True:
        process.send_signal(signal.SIGSTOP)
        with closing(sqlite3.connect(store, timeout=0.2, isolation_level=None)) as connection:
            try:
                connection.execute("begin immediate")
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
            else:
                connection.execute("rollback")
                return


def _let_the_lease_pass(store: Path) -> None:
    """Move the heartbeats back, so that nobody has to wait for the lease to end."""
    long_ago = "2020-01-01T00:00:00.000000Z"
    with closing(sqlite3.connect(store, timeout=30, isolation_level=None)) as connection:
        connection.execute("update workers set heartbeat_at = ?", (long_ago,))
