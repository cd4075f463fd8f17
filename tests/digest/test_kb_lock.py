"""The lock of the one writer: between processes, within one, after a kill, and what a second one is found_text."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afresh.digest import files as locking
from afresh.digest.files import one_writer
from afresh.errors import KbBusy, KbError
from afresh.testing import FrozenClock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PROCESSES, ROUNDS = 3, 40


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "kb" / "index-cache.json.lock"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOON)


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.digest.holding", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    with start(str(lock)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_E7_processes_never_overlap(tmp_path: Path) -> None:
    (tmp_path / "total").write_text("0")
    lock = tmp_path / "lock"
    running = [start(str(lock), str(ROUNDS)) for _ in range(PROCESSES)]
    for process in running:
        process.communicate()
    assert [process.returncode for process in running] == [0] * PROCESSES
    assert (tmp_path / "total").read_text() == str(PROCESSES * ROUNDS)


async def test_E7_tasks_of_one_process_never_overlap(lock: Path, clock: FrozenClock) -> None:
    inside: list[int] = []

    async def work(number: int) -> None:
        async with one_writer(lock, clock, seconds=600):
            inside.append(number)
            for _ in range(5):
                await asyncio.sleep(0)
            assert inside == [number]
            inside.clear()

    await asyncio.gather(*(work(number) for number in range(4)))


async def test_a_second_writer_gets_the_holder_of_the_lock(lock: Path, clock: FrozenClock) -> None:
    with holder(lock) as process:
        with pytest.raises(KbBusy, match=rf"^process {process.pid} since 2\S+Z is writing the index") as caught:
            async with one_writer(lock, clock, seconds=0):
                raise AssertionError("the lock is held")
        assert str(lock) in str(caught.value)


async def test_E27_a_second_writer_waits_for_the_first(lock: Path, clock: FrozenClock) -> None:
    async with one_writer(lock, clock):
        assert lock.read_text().endswith(" since 2026-03-01T12:00:00Z\n")
        second = start(str(lock))
        assert second.stdout is not None
        waiting = asyncio.create_task(asyncio.to_thread(second.stdout.readline))
        with pytest.raises(KbBusy):
            async with one_writer(lock, clock, seconds=0):
                pass
        assert not waiting.done()
    assert await waiting == "held\n"
    await asyncio.to_thread(second.communicate)
    assert (second.returncode, lock.read_text()) == (0, "")


async def test_E7_a_killed_holder_leaves_no_lock_even_if_its_child_lives_on(lock: Path, clock: FrozenClock) -> None:
    with holder(lock) as process:
        process.kill()
        await asyncio.to_thread(process.wait)
        assert f"process {process.pid} " in lock.read_text(), "its words are still there"
        async with one_writer(lock, clock, seconds=0):
            assert f"process {process.pid} " not in lock.read_text()


async def test_the_lock_is_let_go_after_an_error_and_a_cancelled_wait(lock: Path, clock: FrozenClock) -> None:
    with pytest.raises(KeyError):
        async with one_writer(lock, clock):
            raise KeyError
    async with one_writer(lock, clock, seconds=0):
        entered = asyncio.create_task(one_writer(lock, clock, seconds=600).__aenter__())
        await asyncio.sleep(0)
        entered.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entered
    async with one_writer(lock, clock, seconds=0):
        pass


async def test_the_lock_of_a_file_that_was_taken_away_meanwhile_counts_for_nothing(
    lock: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes = 0
    take = locking._take

    def late(file: int) -> None:
        nonlocal takes
        takes += 1
        if takes == 1:
            lock.unlink()
        take(file)

    monkeypatch.setattr(locking, "_take", late)
    async with one_writer(lock, clock):
        assert takes == 2
        with pytest.raises(KbBusy):
            async with one_writer(lock, clock, seconds=0):
                pass


async def test_a_place_that_cannot_be_locked_is_named(tmp_path: Path, clock: FrozenClock) -> None:
    for path in (tmp_path, tmp_path / "file" / "lock"):
        (tmp_path / "file").touch()
        with pytest.raises(KbError, match="cannot lock"):
            async with one_writer(path, clock):
                pass
