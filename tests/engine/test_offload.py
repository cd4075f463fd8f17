"""Work in processes of its own: errors, crashes and endless loops stay there."""

import os
import time
from collections.abc import AsyncIterator

import pytest

from afresh.core.errors import ExtractError
from afresh.engine import offload
from afresh.engine.offload import Offload


@pytest.fixture
async def work() -> AsyncIterator[Offload]:
    """One process, not started yet."""
    work = Offload(1)
    yield work
    await work.close()


async def test_a_result_comes_back_and_the_process_is_another(work: Offload) -> None:
    assert await work.call(sorted, [3, 1, 2]) == [1, 2, 3]
    assert await work.call(os.getpid) != os.getpid()


async def test_an_error_is_told_with_its_reason(work: Offload) -> None:
    with pytest.raises(ExtractError, match="invalid literal"):
        await work.call(int, "no number")
    assert await work.call(int, "7") == 7


async def test_F27_a_crash_fails_that_page_and_the_next_call_gets_a_new_process(work: Offload) -> None:
    before = await work.call(os.getpid)
    with pytest.raises(ExtractError, match="crashed"):
        await work.call(os._exit, 139)
    assert await work.call(os.getpid) != before


async def test_F63_an_endless_loop_is_killed(work: Offload, monkeypatch: pytest.MonkeyPatch) -> None:
    await work.call(int, "1")
    monkeypatch.setattr(offload, "SECONDS", 0.2)
    with pytest.raises(ExtractError, match="took longer"):
        await work.call(time.sleep, 60)
    monkeypatch.undo()
    assert await work.call(int, "2") == 2


async def test_no_process_outlives_its_owner() -> None:
    work = Offload(2)
    pid = await work.call(os.getpid)
    await work.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
