"""Cache clones of git repositories in a folder: locked while in use; the least recently used are removed first."""

import asyncio
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from afresh.sources.git import process
from afresh.sources.git.address import GitAddress, GitFile, files_of
from afresh.sources.git.process import DamagedClone, GitCall, GitError, GitOutputTooLarge, output_of, private_folder
from afresh.sources.git.remote import GitRemote, describe_error

_CLONE, _USED, _WRITTEN, _TRASH = ".git", ".used", ".written", ".trash"
_POLL_SECONDS = 0.05
MAX_WAIT_SECONDS = 600.0
READ_CALL_SECONDS = 120.0  # time limit for calls that read the local clone
MAX_BLOBS_PER_REQUEST = 20_000
MAX_PACKS = 24
_FETCH = (
    *("fetch", "--quiet", "--filter=blob:none", "--no-tags", "--no-write-fetch-head"),
    *("--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates"),
)


class GitCache:
    """A folder of clones that are kept between runs, up to a maximum total size."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes

    async def open(self, address: GitAddress) -> "Lease":
        private_folder(self.folder)
        lease = Lease(self.folder / _stem(address))
        await lease.share()
        return lease

    def touch(self, address: GitAddress) -> None:
        with suppress(OSError):
            os.utime(self.folder / f"{_stem(address)}{_USED}")

    def tidy(self) -> None:
        """Remove unused clones, least recently used first, until the rest is not larger than the maximum size."""
        for left in self.folder.glob(f"*{_TRASH}"):  # left by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        sizes = {clone: _size(clone) for clone in self.folder.glob(f"*{_CLONE}")}
        for clone in sorted(sizes, key=_last_used):
            if sum(sizes.values()) <= self._max_bytes:
                return
            if _remove_unused(clone):
                del sizes[clone]


class Lease:
    """The right to use one clone while the lease is open; the clone at `path` may not exist yet."""

    def __init__(self, stem: Path) -> None:
        self.path = stem.with_name(stem.name + _CLONE)
        self._written = stem.with_name(stem.name + _WRITTEN)
        used = stem.with_name(stem.name + _USED)
        self._used = os.open(used, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.utime(used)

    async def share(self) -> None:
        """Take a shared lock on the clone; wait while another process removes it."""
        await _lock_file(self._used, fcntl.LOCK_SH, MAX_WAIT_SECONDS)

    @asynccontextmanager
    async def writing(self, seconds: float) -> AsyncIterator[tuple[int, ...]]:
        """Lock the clone for writing; yield the locks for git to inherit, so that they are held until git ends."""
        lock = os.open(self._written, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _lock_file(lock, fcntl.LOCK_EX, seconds)
            await asyncio.to_thread(_remove_leftovers, self.path)
            yield (lock, self._used)
        finally:
            os.close(lock)

    async def discard(self) -> bool:
        """Delete the clone; return False if another process uses it."""
        try:
            fcntl.flock(self._used, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            await self.share()
            return False
        try:
            await asyncio.to_thread(_delete, self.path)
        finally:
            fcntl.flock(self._used, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True

    def close(self) -> None:
        os.close(self._used)


def _stem(address: GitAddress) -> str:
    digest = blake2b(address.remote.encode(), digest_size=10).hexdigest()
    return f"{address.name[:60]}-{digest}"


async def _lock_file(lock: int, how: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise GitError("another process is using the clone of this repository", late=True) from None
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return


def _remove_leftovers(clone: Path) -> None:
    packs = ("objects/pack/tmp_*", "objects/pack/*.lock", "objects/??/tmp_obj_*")
    for pattern in ("*.lock", "refs/**/*.lock", *packs):
        for left in clone.glob(pattern):
            with suppress(OSError):
                left.unlink()


def _delete(clone: Path) -> None:
    """Rename the clone before deleting it: if the process is killed meanwhile, no partial clone is left."""
    trash = clone.with_name(f"{clone.name}.{os.getpid()}.{time.monotonic_ns()}{_TRASH}")
    with suppress(FileNotFoundError):
        clone.rename(trash)
    shutil.rmtree(trash, ignore_errors=True)


def _remove_unused(clone: Path) -> bool:
    with suppress(OSError):
        lock = os.open(clone.with_suffix(_USED), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _delete(clone)
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


class GitClone:
    def __init__(self, remote: GitRemote, lease: Lease) -> None:
        self.remote = remote
        self.path = lease.path
        self.lease = lease

    async def files(self, commit: str, folder: bytes) -> Sequence[GitFile]:
        """Return the files of a commit below a folder; fetch the commit if the clone lacks it."""
        if not self.path.exists() or (listing := await self._listing(commit, folder)) is None:
            await self._make(commit)
            kept = blake2b((self.remote.address.ref or "HEAD").encode(), digest_size=8).hexdigest()
            await self._fetch((), ("--depth=1", "origin", f"+{commit}:refs/kept/{kept}"))
            if (listing := await self._listing(commit, folder)) is None:
                raise DamagedClone(f"the clone of {self.remote.address.url} is damaged")
        found = await asyncio.to_thread(lambda: list(files_of(listing)))
        return [each for each in found if each.path.startswith(folder + b"/")] if folder else found

    async def sizes(self, blobs: Iterable[str]) -> Mapping[str, int]:
        """Return the sizes by id of those blobs that the clone has."""
        output = await self._run_offline(("cat-file", "--batch-check", "--buffer"), _lines(blobs))
        rows = (line.split(" ") for line in output.decode("ascii", "replace").splitlines())
        return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}

    async def fetch_blobs(self, blobs: Collection[str]) -> None:
        wanted = sorted(blobs)
        for first in range(0, len(wanted), MAX_BLOBS_PER_REQUEST):
            asked = _lines(wanted[first : first + MAX_BLOBS_PER_REQUEST])
            # Without negotiation: otherwise the remote omits files that it wrongly assumes the clone has.
            await self._fetch(("-c", "fetch.negotiationAlgorithm=noop"), ("--stdin", "origin"), asked)

    def reading(self) -> GitCall:
        """Return the command of a git process that reads blob ids from its input and outputs the contents."""
        return self._call(("cat-file", "--batch"))

    async def _listing(self, commit: str, folder: bytes) -> bytes | None:
        args = ("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
        try:
            await asyncio.to_thread(self._restore_settings, commit)
            return await self._run_offline((*args, os.fsdecode(folder)) if folder else args)
        except DamagedClone:
            return None
        except GitOutputTooLarge:
            raise GitError(
                f"the file list of {self.remote.address.url} is larger than {process.MAX_OUTPUT_BYTES // 1024**2} MB: "
                "add only one folder of it (…#folder)"
            ) from None

    def _restore_settings(self, commit: str) -> None:
        """Rewrite the `config` file of the clone if it is wrong; the length of `commit` shows the hash function."""
        is_long = len(commit) == 64  # the repository uses SHA-256
        settings = f"[core]\n\trepositoryformatversion = {int(is_long)}\n\tfilemode = true\n\tbare = true\n"
        settings += "[extensions]\n\tobjectformat = sha256\n" if is_long else ""
        file = self.path / "config"
        try:
            if file.is_symlink() or not file.is_file() or file.read_text("utf-8", "replace") != settings:
                fresh = self.path / f"config.{os.getpid()}.fresh"
                fresh.write_text(settings, "utf-8")
                fresh.replace(file)
        except OSError as error:
            raise DamagedClone(f"the clone of {self.remote.address.url}: {error.strerror}") from None

    async def _make(self, commit: str) -> None:
        """Create an empty clone, unless there is one; the length of `commit` shows its hash function."""
        form = "sha256" if len(commit) == 64 else "sha1"
        async with self.lease.writing(self.remote.options.timeout_seconds):
            if self.path.exists():
                return
            fresh = self.path.with_suffix(".fresh")
            args = ("init", "--quiet", "--bare", "--template=", f"--object-format={form}", "--", str(fresh))
            await self._run_offline(args, folder=self.path.parent)
            fresh.rename(self.path)

    async def _fetch(self, settings: Sequence[str], args: Sequence[str], stdin: bytes = b"") -> None:
        remote, seconds = self.remote, self.remote.options.timeout_seconds
        async with self.lease.writing(seconds) as locks:
            await asyncio.to_thread(_forget_old, self.path)
            called = (*_origin(remote.address.remote), *settings, *_FETCH, *args)
            try:
                await remote.ask(called, self.path, seconds, stdin, locks)
            except GitError as error:
                if error.explained:
                    raise
                raise DamagedClone(str(error), named=error.named) from None
            if len(list(self.path.glob("objects/pack/*.pack"))) > MAX_PACKS:  # each fetch adds a pack
                repack = (*_origin("none"), "repack", "-a", "-d", "-q")
                await output_of(self._call(repack, locks=locks, seconds=seconds))

    async def _run_offline(self, args: Sequence[str], stdin: bytes = b"", folder: Path | None = None) -> bytes:
        try:
            return await output_of(self._call(args, stdin, folder=folder))
        except GitError as error:
            if error.late or isinstance(error, GitOutputTooLarge):
                raise
            raise DamagedClone(f"the clone of {self.remote.address.url}: {describe_error(str(error))}") from None

    def _call(
        self,
        args: Sequence[str],
        stdin: bytes = b"",
        *,
        folder: Path | None = None,
        locks: tuple[int, ...] = (),
        seconds: float = READ_CALL_SECONDS,
    ) -> GitCall:
        env = self.remote.offline() | ({} if folder else {"GIT_DIR": str(self.path)})
        place = str(folder or self.path)
        return GitCall(args=args, env=env, folder=place, seconds=seconds, stdin=stdin, kept_open=locks)


def _origin(url: str) -> Sequence[str]:
    settings = {"url": url, "promisor": "true", "partialclonefilter": "blob:none"}
    return [part for key, value in settings.items() for part in ("-c", f"remote.origin.{key}={value}")]


def _lines(ids: Iterable[str]) -> bytes:
    return "".join(f"{each}\n" for each in ids).encode()


def _forget_old(clone: Path) -> None:
    """Drop commits without a ref from the clone's `shallow` file, because each fetch sends the whole file."""
    shallow = clone / "shallow"
    if not shallow.exists():
        return
    kept = {name.read_text("ascii").strip() for name in clone.glob("refs/kept/*")}
    if left := [line for line in shallow.read_text("ascii").split() if line in kept]:
        fresh = clone / "shallow.fresh"
        fresh.write_bytes(_lines(left))
        fresh.replace(shallow)
