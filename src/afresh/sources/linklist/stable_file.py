"""Reads a small file that others write at any moment, so that half of it is never taken for all."""

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from afresh.errors import SourceError

MOST_BYTES = 16 * 1024 * 1024
QUIET_SECONDS = 0.5  # a file that was written to more recently may still be
MOST_READS = 40


@dataclass(frozen=True, slots=True)
class Settled:
    """A file as two reads found it alike."""

    data: bytes
    state: tuple[int, ...]  # device, inode, size and time of the last change


async def read_settled(
    file: Path,
    *,
    wall: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Settled:
    """A file that nobody is writing to, read twice; a SourceError says why it cannot be had."""
    last: Settled | None = None
    for _ in range(MOST_READS):
        found = await asyncio.to_thread(_read, file)
        pause = _pause(found, wall())
        if found is not None and found == last and not pause:
            return found
        if pause:
            await sleep(pause)
        last = found
    raise SourceError(f"{file} is being written to all the time: try again later")


def _pause(found: Settled | None, now: float) -> float:
    """How long to wait until a file counts as left alone; a time in the future tells nothing."""
    if found is None:
        return QUIET_SECONDS / 10
    age = now - found.state[-1] / 1e9
    return QUIET_SECONDS - age if 0 <= age < QUIET_SECONDS else 0.0


def _read(file: Path) -> Settled | None:
    """The file at one moment; None if it changed while it was read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            before = _state(os.fstat(descriptor), file)
            data = opened.read(MOST_BYTES + 1)
            after = _state(os.fstat(descriptor), file)
    except FileNotFoundError:
        raise SourceError(f"{file} is not there: everything is kept") from None
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror}): everything is kept") from None
    if len(data) > MOST_BYTES:
        raise SourceError(f"{file} is larger than {MOST_BYTES // 1024 // 1024} MB: is it a list of links?")
    return Settled(data, after) if before == after and len(data) == after[2] else None


def _state(found: os.stat_result, file: Path) -> tuple[int, ...]:
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(f"{file} is no ordinary file: everything is kept")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
