"""Bodies as they are unpacked: other work goes on meanwhile, and no more is unpacked than may be read."""

import asyncio
import gzip
import zlib

import pytest

from afresh.sources.web.answers import UNPACKED_PER_TURN_BYTES, gather

MEGABYTES = 24
ZEROS = bytes(MEGABYTES * 1024 * 1024)


class AtOnce:
    """A body that has arrived whole, so that reading it never waits."""

    def __init__(self, data: bytes, piece: int) -> None:
        self._pieces = [data[at : at + piece] for at in range(0, len(data), piece)]

    async def readany(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def _no_matter() -> None: ...


async def _turns_while_unpacking(body: AtOnce, coding: str, limit: int) -> tuple[int, int]:
    """How often another task had its turn, and how much was unpacked."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    try:
        data = await gather(body, coding, limit, _no_matter)
    finally:
        task.cancel()
    return turns, len(data)


@pytest.mark.parametrize("piece", [1_000_000, 500], ids=["one chunk", "many chunks"])
@pytest.mark.parametrize(
    ("packed", "coding"), [(gzip.compress(ZEROS), "gzip"), (zlib.compress(ZEROS), "deflate")], ids=["gzip", "deflate"]
)
async def test_S2_F166_other_tasks_go_on_while_a_body_is_unpacked(packed: bytes, coding: str, piece: int) -> None:
    assert len(packed) < 64 * 1024
    turns, unpacked = await _turns_while_unpacking(AtOnce(packed, piece), coding, len(ZEROS))
    assert unpacked == len(ZEROS)
    assert turns >= len(ZEROS) // UNPACKED_PER_TURN_BYTES - 1
    assert UNPACKED_PER_TURN_BYTES <= 1024 * 1024


async def test_S2_F166_other_tasks_go_on_while_a_plain_body_arrives() -> None:
    turns, read = await _turns_while_unpacking(AtOnce(ZEROS, 64 * 1024), "", len(ZEROS))
    assert read == len(ZEROS)
    assert turns >= MEGABYTES - 1
