"""The folder of clones: one for each repository, locked while in use, the oldest removed for room."""

import asyncio
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from afresh.sources.git.address import GitAddress
from afresh.sources.git.process import GitError

_CLONE, _USED, _WRITTEN, _TRASH = ".git", ".used", ".written", ".trash"
_POLL_SECONDS = 0.05
PATIENCE_SECONDS = 600.0


class GitCache:
    """Clones of repositories, kept between runs to the size that is allowed."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes

    async def open(self, address: GitAddress) -> "Lease":
        """The place of a repository's clone, which nobody removes until it is closed."""
        private_folder(self.folder)
        lease = Lease(self.folder / _stem(address))
        await lease.share()
        return lease

    def touch(self, address: GitAddress) -> None:
        """Note that a clone was wanted, although it was not opened."""
        with suppress(OSError):
            os.utime(self.folder / f"{_stem(address)}{_USED}")

    async def tidy(self) -> None:
        """Remove clones that nobody uses, the longest unused first, until the rest fits."""
        await asyncio.to_thread(self._tidy)

    def _tidy(self) -> None:
        for left in self.folder.glob(f"*{_TRASH}"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        sizes = {clone: _size(clone) for clone in self.folder.glob(f"*{_CLONE}")}
        for clone in sorted(sizes, key=_last_used):
            if sum(sizes.values()) <= self._max_bytes:
                return
            if _remove_unused(clone):
                del sizes[clone]


class Lease:
    """The right to use one clone; `path` need not exist yet."""

    def __init__(self, stem: Path) -> None:
        self.path = stem.with_name(stem.name + _CLONE)
        self._written = stem.with_name(stem.name + _WRITTEN)
        used = stem.with_name(stem.name + _USED)
        self._used = os.open(used, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.utime(used)

    async def share(self) -> None:
        """Wait until nobody is removing the clone."""
        await _locked(self._used, fcntl.LOCK_SH, PATIENCE_SECONDS)

    @asynccontextmanager
    async def writing(self, seconds: float) -> AsyncIterator[tuple[int, ...]]:
        """Nobody else writes to the clone meanwhile; what a killed process left in the way is removed.

        The locks are handed to git, so that they hold as long as a git process that outlived its parent.
        """
        lock = os.open(self._written, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _locked(lock, fcntl.LOCK_EX, seconds)
            await asyncio.to_thread(_clear, self.path)
            yield (lock, self._used)
        finally:
            os.close(lock)

    async def discard(self) -> bool:
        """Throw the clone away; False if another process uses it."""
        try:
            fcntl.flock(self._used, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            await self.share()
            return False
        try:
            await asyncio.to_thread(_throw_away, self.path)
        finally:
            fcntl.flock(self._used, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True

    def close(self) -> None:
        """Let go of the clone; it stays where it is."""
        os.close(self._used)


def private_folder(folder: Path) -> None:
    """Make a folder that is for its user alone; GitError for one of somebody else."""
    try:
        for each in reversed((folder, *folder.parents)):
            if not each.exists():
                each.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise GitError(f"the folder of clones {folder} is somebody else's: name another (git.cache_dir)")
        if found.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise GitError(f"the folder of clones {folder} cannot be used: {error.strerror}") from None


def _stem(address: GitAddress) -> str:
    digest = blake2b(address.remote.encode(), digest_size=10).hexdigest()
    return f"{address.name[:60]}-{digest}"


async def _locked(lock: int, how: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise GitError("another process works on the clone of this repository", late=True) from None
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return


def _clear(clone: Path) -> None:
    for pattern in (
        "*.lock",
        "refs/**/*.lock",
        "objects/pack/tmp_*",
        "objects/pack/*.lock",
        "objects/??/tmp_obj_*",
    ):
        for left in clone.glob(pattern):
            with suppress(OSError):
                left.unlink()


def _throw_away(clone: Path) -> None:
    """In one step for all who look: a kill in the middle leaves no half clone."""
    trash = clone.with_name(f"{clone.name}.{os.getpid()}.{time.monotonic_ns()}{_TRASH}")
    with suppress(FileNotFoundError):
        clone.rename(trash)
    shutil.rmtree(trash, ignore_errors=True)


def _remove_unused(clone: Path) -> bool:
    with suppress(OSError):
        lock = os.open(clone.with_suffix(_USED), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _throw_away(clone)
        finally:
            os.close(lock)
        return True
    return False


def _last_used(clone: Path) -> float:
    try:
        return clone.with_suffix(_USED).stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
