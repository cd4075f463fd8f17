"""Work in processes of its own: errors, crashes, endless loops and great hunger stay there."""

import asyncio
import ctypes
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from afresh.errors import ExtractError, ParserCrashed, ParserTimeout
from afresh.extract.pool import pool
from afresh.extract.pool.child import GROWN, resident_bytes
from afresh.extract.pool.pool import ParserPool
from afresh.extract.pool.wire import LazyFunction

ENDLESS = 10**18  # steps; itertools cannot be sent to a process from Python 3.14 on


@pytest.fixture
async def work() -> AsyncIterator[ParserPool]:
    """One process, not started yet."""
    work = ParserPool(1)
    yield work
    await work.close()


async def _together(*calls: Awaitable[object]) -> list[object]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_a_result_comes_back_and_the_process_is_another(work: ParserPool) -> None:
    assert await work.call(sorted, [3, 1, 2]) == [1, 2, 3]
    assert await work.call(os.getpid) != os.getpid()


async def test_an_error_has_its_reason(work: ParserPool) -> None:
    with pytest.raises(ExtractError, match="invalid literal") as error:
        await work.call(int, "no number")
    assert not isinstance(error.value, ParserCrashed)
    assert await work.call(int, "7") == 7


@pytest.mark.parametrize(
    ("crash", "argument", "how"), [(os._exit, 139, "exit code 139"), (ctypes.string_at, 0, "SIGSEGV")]
)
async def test_F27_a_crash_fails_that_page_and_the_next_call_gets_a_new_process(
    work: ParserPool, crash: object, argument: int, how: str
) -> None:
    before = await work.call(os.getpid)
    with pytest.raises(ParserCrashed, match=how):
        await work.call(crash, argument)  # type: ignore[arg-type]
    assert await work.call(os.getpid) != before


async def test_F27_only_the_call_in_work_is_blamed_and_tried_once(work: ParserPool, tmp_path: Path) -> None:
    log = tmp_path / "tries"
    good = [work.call(int, str(number)) for number in range(4)]
    first, culprit, *others = await _together(
        good[0], work.call(os.system, f"echo x >> {log}; kill -9 $PPID"), *good[1:]
    )
    assert isinstance(culprit, ParserCrashed)
    assert "SIGKILL" in str(culprit)
    assert (first, others) == (0, [1, 2, 3])
    assert log.read_text() == "x\n"


@pytest.mark.slow
async def test_F27_many_poison_calls_never_hurt_the_good_ones(work: ParserPool) -> None:
    calls = [work.call(os._exit, 1) if number % 4 == 1 else work.call(abs, number) for number in range(12)]
    error = await _together(*calls)
    assert [each for each in error if not isinstance(each, ParserCrashed)] == [0, 2, 3, 4, 6, 7, 8, 10, 11]


async def test_F63_an_endless_loop_is_killed(work: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    await work.call(int, "1")
    monkeypatch.setattr(pool, "SECONDS", 0.2)
    with pytest.raises(ParserTimeout, match=r"took longer than 0\.2 s"):
        await work.call(sum, range(ENDLESS))
    monkeypatch.undo()
    assert await work.call(int, "2") == 2


async def test_F63_time_spent_in_the_queue_is_not_counted(work: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls of 0.8 s go to the process together; the second would be late if its clock ran at once."""
    pid = await work.call(os.getpid)
    monkeypatch.setattr(pool, "SECONDS", 1.5)
    await asyncio.gather(work.call(time.sleep, 0.8), work.call(time.sleep, 0.8))
    assert await work.call(os.getpid) == pid


async def test_F63_a_call_behind_an_endless_loop_is_repeated_without_blame(
    work: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work.call(int, "1")
    monkeypatch.setattr(pool, "SECONDS", 0.5)
    loop, waited = await _together(work.call(all, range(1, ENDLESS)), work.call(int, "3"))
    assert isinstance(loop, ParserCrashed)
    assert waited == 3


async def test_F63_hunger_for_memory_is_an_error_of_that_page(work: ParserPool) -> None:
    before = await work.call(os.getpid)
    with pytest.raises(ExtractError, match="needs too much memory"):
        await work.call(bytearray, 4 * 1024**3)
    assert await work.call(os.getpid) != before


async def test_a_process_that_has_grown_is_replaced_after_its_answer(work: ParserPool) -> None:
    """What it answers is kept; who waits behind it is served by the next, without blame."""
    before = await work.call(os.getpid)
    grown, behind = await asyncio.gather(
        work.call(exec, f"import sys; sys.kept = bytearray({GROWN})"), work.call(os.getpid)
    )
    assert grown is None
    assert behind != before
    assert await work.call(resident_bytes) < GROWN


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
async def test_memory_that_a_large_page_needed_is_given_back(work: ParserPool) -> None:
    before = await work.call(resident_bytes)
    await work.call(exec, "import sys; page = [bytes(1000) for _ in range(80_000)]; sys.kept = bytes(1000); del page")
    assert await work.call(resident_bytes) < before + 40_000_000


async def test_a_call_that_waits_long_starts_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(pool, "MAX_WAIT_SECONDS", 0.1)
    work = ParserPool()
    try:
        first = await work.call(os.getpid)
        assert {await work.call(os.getpid) for _ in range(3)} == {first}
        _, ahead, waited = await asyncio.gather(work.call(time.sleep, 1), work.call(os.getpid), work.call(os.getpid))
        assert ahead == first != waited
    finally:
        await work.close()


async def test_a_call_that_goes_first_waits_only_for_calls_that_were_sent(work: ParserPool, tmp_path: Path) -> None:
    log = tmp_path / "order"
    waiting = [work.call(os.system, f"echo {number} >> {log}") for number in range(6)]
    await _together(*waiting, work.call(LazyFunction("os", "system", goes_first=True), f"echo next >> {log}"))
    assert log.read_text().split() == ["0", "1", "next", "2", "3", "4", "5"]


async def test_F27_a_call_that_goes_first_is_repeated_if_another_crashes_the_process(work: ParserPool) -> None:
    culprit, good = await _together(
        work.call(os._exit, 1), work.call(LazyFunction("builtins", "abs", goes_first=True), -3)
    )
    assert isinstance(culprit, ParserCrashed)
    assert good == 3


async def test_the_process_limits_itself_and_inherits_nothing(work: ParserPool, tmp_path: Path) -> None:
    """A descriptor that our side would let others inherit does not reach it, and no core file is written."""
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        names = await work.call(os.listdir, "/proc/self/fd")
        targets = await _together(*(work.call(os.readlink, f"/proc/self/fd/{name}") for name in names))
    assert str(tmp_path / "secret") not in targets
    assert list(await work.call(resource.getrlimit, resource.RLIMIT_CORE)) == [0, 0]
    assert (await work.call(resource.getrlimit, resource.RLIMIT_AS))[0] < 4 * 1024**3


async def test_what_it_prints_is_not_taken_for_an_answer(work: ParserPool, capfd: pytest.CaptureFixture[str]) -> None:
    await work.call(print, "noise", flush=True)
    assert await work.call(os.system, "echo noise; echo noise >&2") == 0
    assert await work.call(int, "5") == 5
    assert capfd.readouterr() == ("", "")


async def test_a_process_that_does_not_start_blames_no_page(work: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("/bin/false", "/no/such/program"):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(ExtractError, match="does not start") as error:
            await work.call(int, "1")
        assert not isinstance(error.value, ParserCrashed)
    monkeypatch.undo()
    assert await work.call(int, "1") == 1


async def test_closing_ends_the_calls_under_way_and_no_process_outlives_its_owner() -> None:
    work = ParserPool(1)
    pid = await work.call(os.getpid)
    under_way = asyncio.create_task(work.call(time.sleep, 60))
    await asyncio.sleep(0)
    await work.close()
    with pytest.raises(ExtractError, match="closed"):
        await under_way
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_S8_the_process_inherits_no_secret_of_the_environment(
    work: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AFRESH_AI__API_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "PGPASSWORD", "DATABASE_URL"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    names = await work.call(eval, "sorted(__import__('os').environ.items())")
    assert "hush" not in str(names)
    assert ["LC_ALL", "C.UTF-8"] in names
    assert any(name == "PATH" for name, _ in names)


async def test_S8_an_answer_is_data_and_never_code(work: ParserPool, tmp_path: Path) -> None:
    """A parser that was taken over may answer with any object, or write any bytes: none of them runs here."""
    ran = tmp_path / "ran"
    evil = f"type('Evil', (), {{'__reduce__': lambda self: (__import__('os').system, ('touch {ran}',))}})()"
    with pytest.raises(ExtractError, match="type Evil is unsupported"):
        await work.call(eval, evil)
    before = await work.call(os.getpid)
    taken_over = f"import pickle, sys; sys.modules['__main__'].encode = lambda _: pickle.dumps((True, {evil}))"
    await work.call(exec, taken_over)
    with pytest.raises(ParserCrashed, match="sent an invalid answer"):
        await work.call(int, "1")
    assert not ran.exists()
    assert await work.call(os.getpid) != before


async def test_S8_a_wrong_answer_is_a_crash_that_costs_the_next_call_nothing(work: ParserPool) -> None:
    number = LazyFunction("builtins", "eval", int)
    wrong, right, other = await _together(
        work.call(number, "'no number'"), work.call(number, "7"), work.call(number, "8")
    )
    assert isinstance(wrong, ParserCrashed)
    assert (right, other) == (7, 8)


async def test_S8_an_answer_that_nobody_asked_for_ends_the_process(work: ParserPool) -> None:
    before = await work.call(os.getpid)
    twice = "(m := __import__('sys').modules['__main__'])._write(m.answers, m.encode(1), last=False)"
    assert await work.call(eval, twice) == 1
    (child,) = work._children
    assert child is not None
    await child._reader
    assert await work.call(os.getpid) not in (None, before)


async def test_S8_an_answer_that_is_too_large_ends_the_process_that_sent_it(
    work: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await work.call(os.getpid)
    monkeypatch.setattr(pool, "MAX_ANSWER_BYTES", 1_000)
    with pytest.raises(ParserCrashed):
        await work.call(str, "x" * 2_000)
    assert await work.call(os.getpid) != before
