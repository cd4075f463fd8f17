"""Read and write the cache and index files of the digest, and lock them for writing."""

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from afresh.digest.cache import Cache, format_cache, index_text, parse_cache, rfc3339
from afresh.errors import KbBusy, KbError
from afresh.files import read_whole, write_whole
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock
from afresh.text.redact import one_line

LOCK_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_MAX_HOLDER_BYTES = 200  # maximum size of the text in the lock file that names its holder
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # lock a byte after the text, because Windows does not allow reading locked bytes

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
async def one_writer(path: Path, clock: Clock, seconds: float = LOCK_WAIT_SECONDS) -> AsyncIterator[None]:
    """Hold the write lock, also against other tasks of this process; after a timeout, raise KbBusy."""
    until = time.monotonic() + seconds
    while (file := _try(path)) is None:
        if time.monotonic() >= until:
            raise KbBusy(f"{_holder(path)} is writing the index: try again later (lock file: {path})")
        await asyncio.sleep(_POLL_SECONDS)
    try:
        with suppress(OSError):  # on a full disk the lock file has no text, but the lock works
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, f"process {os.getpid()} since {rfc3339(clock())}\n".encode())
        yield
    finally:
        with suppress(OSError):
            os.ftruncate(file, 0)
        with suppress(OSError):
            _let_go(file)
        os.close(file)


def _try(path: Path) -> int | None:
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
    os.close(file)  # another process has the lock, or the file was removed before it was locked
    return None


def _holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            holder = one_line(file.read(_MAX_HOLDER_BYTES).decode("utf-8", "replace").strip())
    except OSError:
        holder = ""
    return holder or "another process"


class DigestFiles:
    """The cache file and the index file; hold the lock to write them."""

    def __init__(self, *, index: Path, cache: Path) -> None:
        self.index = index
        self.cache = cache
        self.digest: str | None = None  # hash of the cache file as last read or written
        self._held: Cache | None = None  # content of the cache file as last read or written

    def read(self) -> Cache | None:
        """Parse the cache file; return None if it does not exist, and raise KbError if it is invalid."""
        data = read_whole(self.cache)
        self.digest = None if data is None else _digest(data)
        self._held = None if data is None else parse_cache(data, str(self.cache))
        return self._held

    def write(self, cache: Cache) -> bool:
        """Write the cache, and then the index that is made from it; return whether one of the files changed."""
        failpoint("kb.cache")
        changed = False
        if cache is not self._held:
            data = format_cache(cache).encode()
            changed = write_whole(self.cache, data)
            self.digest, self._held = _digest(data), cache
        failpoint("kb.index")
        index_changed = write_whole(self.index, index_text(cache.sources.values()).encode())
        failpoint("kb.written")
        return changed or index_changed


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
