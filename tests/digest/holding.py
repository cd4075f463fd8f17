"""A process that holds a lock until its stdin ends or it is killed; or that counts under it."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from afresh.digest.files import one_writer


def clock() -> datetime:
    """The time of the real clock."""
    return datetime.now(UTC)


def start_child() -> None:
    """A running process that was handed whatever may be inherited, and outlives a parent that is killed."""
    code = "import sys; print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], close_fds=False, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()  # before its code runs, it may not have closed our descriptors yet


async def hold(lock: Path) -> None:
    """Hold the lock until stdin ends; a child that could inherit it lives as long."""
    async with one_writer(lock, clock):
        start_child()
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def count(lock: Path, rounds: int) -> None:
    """Under the lock, see that nobody else is there, and add one to a file, in two steps."""
    here, total = lock.with_name("here"), lock.with_name("total")
    for _ in range(rounds):
        async with one_writer(lock, clock, seconds=600):
            here.touch(exist_ok=False)
            number = int(total.read_text())
            await asyncio.sleep(0)
            total.write_text(str(number + 1))
            here.unlink()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    asyncio.run(count(path, int(sys.argv[2])) if len(sys.argv) > 2 else hold(path))
