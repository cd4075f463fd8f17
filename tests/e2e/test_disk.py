"""F11-F14, F18: a full disk, a locked store, a lost one, an old one; the crawl waits or goes on."""

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened, rows
from tests.e2e.program import ROOT, TIMEOUT, Program, ended
from tests.e2e.sites import lay, page, star, word

from afresh.events import Event, Notice, PageStep
from afresh.store.repository import FULL, GOING_ON
from afresh.testing import TinySite

PAGES = 12
NOBODY = 2**22 + 1  # no process has this number
TEXT = " ".join(f"word{number}" for number in range(2000))


@pytest.fixture
def large(tiny: TinySite) -> TinySite:
    """A site whose pages take some room."""
    paths = [f"/p{number}" for number in range(PAGES)]
    tiny.put("/", page("/", paths))
    for path in paths:
        tiny.put(path, page(path, ["/"], f"This page speaks of {word(path)}. {TEXT}"))
    return tiny


@pytest.fixture
def program(store: Path) -> Program:
    return Program(store, in_process=True)


async def clean_index(site: TinySite, folder: Path) -> object:
    """What a crawl without trouble gives."""
    async with opened(folder / "clean.db") as kb:
        await kb.runs.crawl(site.url, name="docs")
    return index_of(folder / "clean.db")


def full_disk(process: subprocess.Popen[str], size: int = resource.RLIM_INFINITY) -> None:
    """Let no file of a process grow beyond a size, as on a disk that is full; or let it grow again."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def message(process: subprocess.Popen[str], words: str) -> str:
    """The line of stderr that holds the words, waited for."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"the command ended without saying {words!r}")


@pytest.fixture
def starved(large: TinySite, program: Program, store: Path) -> Iterator[subprocess.Popen[str]]:
    """A crawl that has run out of room half-way."""
    assert program.run("crawl", large.url, "--name", "docs", "--max-pages", "2").code == 0
    room = store.stat().st_size + 150_000
    process = program.start("crawl", large.url, "--name", "docs", "--max-pages", "100", "--json")
    full_disk(process, room)
    message(process, FULL)
    yield process
    process.kill()
    process.wait(TIMEOUT)


async def test_F12_a_crawl_waits_for_room_and_goes_on(
    starved: subprocess.Popen[str], large: TinySite, store: Path, work: type[InProcess]
) -> None:
    assert starved.poll() is None
    written = len(index_of(store))
    assert 0 < written < PAGES + 1
    full_disk(starved)
    last = ended(starved)
    assert (last.code, last.report["state"]) == (0, "completed"), last
    assert GOING_ON in last.err
    assert FULL not in last.err, "told once"
    assert_sound(store)
    assert index_of(store) == await clean_index(large, store.parent)


async def test_F12_a_crawl_that_waits_for_room_can_be_stopped(
    starved: subprocess.Popen[str], program: Program, large: TinySite, store: Path, work: type[InProcess]
) -> None:
    starved.send_signal(signal.SIGINT)
    stopped = ended(starved)
    assert stopped.code == 2, stopped
    assert "disk full" in stopped.err
    assert "it continues where it stopped" in stopped.err
    assert "Traceback" not in stopped.err
    last = program.run("refresh", "docs", "--json")
    assert last.code == 0, last
    assert_sound(store)
    assert index_of(store) == await clean_index(large, store.parent)


# ---- F13: no room for anything but the store


async def test_F13_a_full_disk_under_log_and_temporary_files_stops_nothing(
    site: TinySite, program: Program, store: Path
) -> None:
    command = [sys.executable, "-m", "tests.e2e.mortal", "crawl", site.url, "--name", "docs", "--json", "-vv"]
    environment = {**os.environ, **program.environment(), "TMPDIR": "/dev/full"}
    with open("/dev/full", "w") as full:  # noqa: ASYNC230, PTH123
        done = await asyncio.to_thread(
            subprocess.run,
            [*command, "--config", str(program.file)],
            stdout=subprocess.PIPE,
            stderr=full,
            env=environment,
            cwd=ROOT,
        )
    assert done.returncode == 0
    assert b'"completed"' in done.stdout
    assert_sound(store)


@pytest.mark.parametrize("words", [("sources",), ("sources", "--json")])
async def test_F13_an_answer_that_finds_no_room_fails_in_one_sentence(
    words: tuple[str, ...], store: Path, program: Program
) -> None:
    async with opened(store) as kb:
        assert await kb.sources.views() == []
    command = [sys.executable, "-m", "tests.e2e.mortal", *words, "--config", str(program.file)]
    with open("/dev/full", "w") as full:  # noqa: ASYNC230, PTH123
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, **program.environment()},
            cwd=ROOT,
        )
    assert done.returncode == 1
    [sentence] = done.stderr.decode().splitlines()
    assert sentence.startswith("afresh: ")
    assert "output" in sentence
    assert "should not" not in sentence, "it is no surprise"


# ---- F14: locked by another process


async def test_F14_a_crawl_waits_for_a_lock_and_loses_nothing(
    tiny: TinySite, store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that outlasts many tries: every try fails at once, so that the test need not wait for it."""
    monkeypatch.setattr("afresh.app.TRY_SECONDS", 0.0)
    monkeypatch.setattr("afresh.store.repository.REPORT_BUSY_SECONDS", 0.0)
    lay(tiny, star(20))
    received: list[str] = []
    locked: list[object] = []
    async with opened(store) as kb:
        with closing(sqlite3.connect(store, isolation_level=None)) as other:

            def receive(event: Event) -> None:
                """Lock the store behind the first page, free it once the run has noticed."""
                if isinstance(event, PageStep) and event.name == "commit" and not locked:
                    locked.append(other.execute("begin exclusive"))
                elif isinstance(event, Notice):
                    received.append(event.text)
                    if other.in_transaction:
                        asyncio.get_running_loop().call_later(0.2, other.rollback)

            report = await kb.runs.crawl(tiny.url, name="docs", listener=receive)
        assert len(await found(kb, word("/p3"))) == 1
    assert received == ["another process keeps the store locked: waiting; Ctrl-C stops", GOING_ON]
    assert (report.state, report.failed, report.new) == ("completed", 0, 21)
    assert_sound(store)


# ---- F11: power loss


def bury_workers(store: Path) -> None:
    """Those who held something in a copy are gone, although the process that runs this test is not."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("update workers set pid = ?", (NOBODY,))
        connection.commit()


async def test_F11_what_a_run_has_acknowledged_survives_a_power_loss(
    tiny: TinySite, store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    lay(tiny, star(20))
    acknowledged: list[str] = []
    copies: list[tuple[Path, list[str]]] = []

    def receive(event: Event) -> None:
        """After some pages, take file and log as a power loss would leave them."""
        if isinstance(event, PageStep) and event.name == "commit":
            acknowledged.append(event.url)
            if len(acknowledged) in (1, 5, 20):
                folder = tmp_path / f"copy-{len(acknowledged)}"
                folder.mkdir()
                for file in (store, store.with_name("kb.db-wal")):
                    shutil.copy(file, folder)
                copies.append((folder / "kb.db", acknowledged.copy()))

    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs", listener=receive)
    whole = index_of(store)
    for copy, urls in copies:
        bury_workers(copy)
        async with opened(copy) as kb:
            assert set(urls) <= set(index_of(copy)), "what was acknowledged is there"
            await kb.runs.refresh(["docs"])
        assert_sound(copy)
        assert index_of(copy) == whole
    assert len(copies) == 3


# ---- F18: an old backup


async def test_F18_a_restored_backup_catches_up_and_deletes_nothing_but_what_is_gone(
    tiny: TinySite, store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    backup = tmp_path / "backup.db"
    lay(tiny, star(30))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
    shutil.copy(store, backup)
    tiny.put("/p1", page("/p1", ["/"], "other words"))
    tiny.put("/", page("/", [*star(30)["/"][:-1], "/fresh"]))
    lay(tiny, {"/fresh": []})
    tiny.delete("/p29")
    for _ in range(3):
        async with opened(store) as kb:
            await kb.runs.refresh(["docs"])
    newest = index_of(store)
    shutil.copy(backup, store)
    async with opened(store) as kb:
        [report] = await kb.runs.refresh(["docs"])
        assert report.state == "completed"
        assert counts(report) == {"new": 1, "changed": 2, "deleted": 1, "not_modified": 28}
        assert len(await found(kb, word("/p3"))) == 1
        [again] = await kb.runs.refresh(["docs"])
    assert again.run > report.run
    assert counts(again) == {"not_modified": 31}
    assert_sound(store)
    assert index_of(store) == newest


async def test_F18_a_backup_taken_in_the_middle_of_a_run_goes_on(
    tiny: TinySite, store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    """Its run, its workers and its locks are of a process that is long gone."""
    lay(tiny, star(30))
    backup = tmp_path / "backup.db"

    def receive(event: Event) -> None:
        """Takes the backup while a page is being looked at."""
        if isinstance(event, PageStep) and event.name == "fetch" and event.url.endswith("/p5"):
            with closing(sqlite3.connect(store)) as now, closing(sqlite3.connect(backup)) as then:
                now.backup(then)

    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs", listener=receive)
    whole = index_of(store)
    bury_workers(backup)
    shutil.copy(backup, store)
    assert rows(store, "select 1 from page_crawls where locked_by is not null")
    async with opened(store) as kb:
        [report] = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 0)
    assert_sound(store)
    assert index_of(store) == whole
