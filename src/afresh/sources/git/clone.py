"""A bare clone without history: the trees of a commit, and just the files that were asked for.

The clone is partial, but its own settings do not say so: only the calls that fetch are told. So git never
fetches a missing file by itself, with a request for each, when somebody merely looks.
"""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from afresh.sources.git.cache import Lease
from afresh.sources.git.process import MOST_OUTPUT, Call, GitDamage, GitError, GitTooMuch, output_of
from afresh.sources.git.remote import GitRemote, in_words
from afresh.sources.git.tree import GitFile, files_of

LOOK_SECONDS = 120.0  # for calls that read what is here
AT_ONCE = 20_000  # files that are asked for in one request
MOST_PACKS = 24
_FETCH = (
    *("fetch", "--quiet", "--filter=blob:none", "--no-tags", "--no-write-fetch-head"),
    *("--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates"),
)


class GitClone:
    """The copy of a repository in its place in the cache."""

    def __init__(self, remote: GitRemote, lease: Lease) -> None:
        self.remote = remote
        self.path = lease.path
        self._lease = lease

    async def files(self, commit: str, folder: bytes) -> Sequence[GitFile]:
        """All entries of a commit below a folder, fetched if they are not here."""
        if not self.path.exists() or (listing := await self._listing(commit, folder)) is None:
            await self._fetch_commit(commit)
            if (listing := await self._listing(commit, folder)) is None:
                raise GitDamage(f"the clone of {self.remote.address.url} is damaged")
        found = list(await asyncio.to_thread(lambda: list(files_of(listing))))
        return [each for each in found if each.path.startswith(folder + b"/")] if folder else found

    async def sizes(self, blobs: Iterable[str]) -> Mapping[str, int]:
        """The sizes of those files that are here."""
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        said = await self._look(("cat-file", "--batch-check", "--buffer"), asked)
        rows = (line.split(" ") for line in said.decode("ascii", "replace").splitlines())
        return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}

    async def fetch_blobs(self, blobs: Collection[str]) -> None:
        """Fetch files that are missing, all of them with one request."""
        wanted = sorted(blobs)
        for first in range(0, len(wanted), AT_ONCE):
            asked = "".join(f"{blob}\n" for blob in wanted[first : first + AT_ONCE]).encode()
            # No common history is sought: the far side would leave out what it believes to be here.
            await self._fetch(("-c", "fetch.negotiationAlgorithm=noop"), ("--stdin", "origin"), asked)

    async def discard(self) -> bool:
        """Throw the clone away; False if another process uses it."""
        return await self._lease.discard()

    def reading(self) -> Call:
        """The call that reads files one after the other."""
        return self._call(("cat-file", "--batch"), b"")

    async def _listing(self, commit: str, folder: bytes) -> bytes | None:
        args = ("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
        try:
            await asyncio.to_thread(self._own_settings, commit)
            return await self._look((*args, os.fsdecode(folder)) if folder else args)
        except GitDamage:
            return None
        except GitTooMuch:
            most = f"{MOST_OUTPUT // 1024**2} MB"
            raise GitError(
                f"{self.remote.address.url} names too many files, their list is larger than {most}: "
                "read one folder of it (…#folder)"
            ) from None

    def _own_settings(self, commit: str) -> None:
        """Put the settings of a clone back: whatever else stands there was written by somebody else."""
        file, settings = self.path / "config", _settings(commit)
        try:
            if file.is_symlink() or not file.is_file() or file.read_text("utf-8", "replace") != settings:
                fresh = self.path / f"config.{os.getpid()}.fresh"
                fresh.write_text(settings, "utf-8")
                fresh.replace(file)
        except OSError as error:
            raise GitDamage(f"the clone of {self.remote.address.url}: {error.strerror}") from None

    async def _fetch_commit(self, commit: str) -> None:
        if not self.path.exists():
            await self._make(commit)
        kept = blake2b((self.remote.address.ref or "HEAD").encode(), digest_size=8).hexdigest()
        await self._fetch((), ("--depth=1", "origin", f"+{commit}:refs/kept/{kept}"))

    async def _make(self, commit: str) -> None:
        """An empty clone, in its place only when it is whole."""
        form = "sha256" if len(commit) == 64 else "sha1"
        async with self._lease.writing(self.remote.options.total_seconds):
            if self.path.exists():
                return
            fresh = self.path.with_suffix(".fresh")
            args = ("init", "--quiet", "--bare", "--template=", f"--object-format={form}", "--", str(fresh))
            await self._look(args, folder=self.path.parent)
            fresh.rename(self.path)

    async def _fetch(self, settings: Sequence[str], args: Sequence[str], stdin: bytes = b"") -> None:
        remote, seconds = self.remote, self.remote.options.total_seconds
        async with self._lease.writing(seconds) as locks:
            await asyncio.to_thread(_forget_old, self.path)
            called = (*_origin(remote.address.remote), *settings, *_FETCH, *args)
            try:
                await remote.ask(called, self.path, seconds, stdin, locks)
            except GitError as error:
                if error.explained:
                    raise
                raise GitDamage(str(error), named=error.named) from None
            if len(list(self.path.glob("objects/pack/*.pack"))) > MOST_PACKS:
                await self._repack(locks)

    async def _repack(self, locks: tuple[int, ...]) -> None:
        """One pack instead of many: each fetch adds one."""
        args = (*_origin("none"), "repack", "-a", "-d", "-q")
        await output_of(self._call(args, b"", locks=locks, seconds=self.remote.options.total_seconds))

    async def _look(self, args: Sequence[str], stdin: bytes = b"", folder: Path | None = None) -> bytes:
        try:
            return await output_of(self._call(args, stdin, folder=folder))
        except GitError as error:
            if error.late or isinstance(error, GitTooMuch):
                raise
            raise GitDamage(f"the clone of {self.remote.address.url}: {in_words(str(error))}") from None

    def _call(
        self,
        args: Sequence[str],
        stdin: bytes,
        *,
        folder: Path | None = None,
        locks: tuple[int, ...] = (),
        seconds: float = LOOK_SECONDS,
    ) -> Call:
        env = self.remote.offline() | ({} if folder else {"GIT_DIR": str(self.path)})
        place = str(folder or self.path)
        return Call(args=args, env=env, folder=place, seconds=seconds, stdin=stdin, kept_open=locks)


def _settings(commit: str) -> str:
    """All that a clone has to say of itself, by the kind of its ids."""
    is_long = len(commit) == 64
    core = f"[core]\n\trepositoryformatversion = {int(is_long)}\n\tfilemode = true\n\tbare = true\n"
    return core + ("[extensions]\n\tobjectformat = sha256\n" if is_long else "")


def _origin(url: str) -> Sequence[str]:
    """What only a call that fetches is told: where from, and that files may be missing."""
    told = {"url": url, "promisor": "true", "partialclonefilter": "blob:none"}
    return [part for key, value in told.items() for part in ("-c", f"remote.origin.{key}={value}")]


def _forget_old(clone: Path) -> None:
    """Forget where histories end that no name leads to, or the far side is told all of them each time."""
    shallow = clone / "shallow"
    if not shallow.exists():
        return
    kept = {name.read_text("ascii").strip() for name in clone.glob("refs/kept/*")}
    lines = shallow.read_text("ascii").split()
    if left := [line for line in lines if line in kept]:
        fresh = clone / "shallow.fresh"
        fresh.write_text("".join(f"{line}\n" for line in left), "ascii")
        fresh.replace(shallow)
