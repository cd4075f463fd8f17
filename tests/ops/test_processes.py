"""A process that is told to end is seen to have ended, whatever it still had to say."""

import asyncio
import sys
from asyncio.subprocess import PIPE

from afresh.ops.processes import wait_for_exit

TALKER = "import sys\nwhile True: sys.stdout.write('x' * 65536)"


async def test_P12_a_process_whose_pipe_is_full_and_unread_is_seen_to_end() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", TALKER, stdout=PIPE, limit=1024)
    assert process.stdout is not None
    await process.stdout.readexactly(1)
    while not process.stdout._paused:  # type: ignore[attr-defined]  # noqa: ASYNC110 - until nobody reads
        await asyncio.sleep(0)
    process.kill()
    async with asyncio.timeout(60):
        assert await wait_for_exit(process) < 0
