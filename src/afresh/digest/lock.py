"""One writer at a time: a lock that the system lets go of when its process ends, however it ends."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from afresh.digest.cache import rfc3339
from afresh.errors import KbBusy, KbError
from afresh.ports import Clock
from afresh.text.redact import one_line

PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05
_TOLD = 200  # bytes that are read of what a holder says about itself
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # Windows lets nobody read what is locked, so a byte behind the words is

    def _take(file: int) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _let_go(file: int) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _let_go(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@asynccontextmanager
async def one_writer(path: Path, clock: Clock, seconds: float = PATIENCE_SECONDS) -> AsyncIterator[None]:
    """Nobody else holds the lock meanwhile, in this process or another; KbBusy names who held it too long.

    The file of the lock stays where it is when the lock is let go: only its words go.
    """
    file = await _locked(path, seconds)
    try:
        _say(file, f"process {os.getpid()} since {rfc3339(clock())}")
        yield
    finally:
        with suppress(OSError):
            os.ftruncate(file, 0)
        with suppress(OSError):
            _let_go(file)
        os.close(file)


async def _locked(path: Path, seconds: float) -> int:
    until = time.monotonic() + seconds
    while (file := _try(path)) is None:
        if time.monotonic() >= until:
            raise KbBusy(f"{_holder(path)} is writing the index: try again later (the lock is {path})")
        await asyncio.sleep(_POLL_SECONDS)
    return file


def _try(path: Path) -> int | None:
    """The open file with its lock taken; None if another has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, _OPEN, 0o666)
    except OSError as error:
        raise KbError(f"cannot lock {path}: {error.strerror or error}") from None
    try:
        _take(file)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except OSError as error:
        os.close(file)
        raise KbError(f"cannot lock {path}: {error.strerror or error}") from None
    os.close(file)  # held by another, or the file was taken away before its lock was ours
    return None


def _say(file: int, words: str) -> None:
    with suppress(OSError):  # on a full disk nobody learns who holds the lock; it holds all the same
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, f"{words}\n".encode())


def _holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            told = one_line(file.read(_TOLD).decode("utf-8", "replace").strip())
    except OSError:
        told = ""
    return told or "another process"
