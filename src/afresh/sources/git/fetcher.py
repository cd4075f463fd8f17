"""Looking at the files of a git repository: one state of it a run, one process that reads."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Outcome, Refused, Request, Validators
from afresh.sources.git.blobs import BlobReader
from afresh.sources.git.cache import GitCache, Lease
from afresh.sources.git.clone import GitClone
from afresh.sources.git.page_urls import GitPages, pages_of
from afresh.sources.git.process import GitDamage, GitError
from afresh.sources.git.remote import GitRemote
from afresh.sources.git.tree import GitFile, GitState

_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1_024
MOST_REQUESTS = 50  # for the files of one state, where some are lacking
TOO_LONG = "names longer than an address may be"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One state of a repository: the files that are let in, and how many were not."""

    pages: GitPages
    files: Mapping[str, GitFile]  # by their addresses
    dropped: Mapping[str, int]  # why to how many


@dataclass(slots=True)
class _Opened:
    """What is held open of a clone."""

    lease: Lease
    clone: GitClone
    reader: BlobReader
    sizes: dict[str, int] = field(default_factory=dict)
    brought: bool = False  # whatever the far side gives is here
    absent: set[str] = field(default_factory=set)  # files that the far side names but lacks
    trouble: GitError | None = None  # why it gave less than was wanted


class GitRepository:
    """A repository during one run: its state is asked for once, and then stands still for all who look."""

    def __init__(self, remote: GitRemote, cache: GitCache, refusal: Callable[[str], str | None]) -> None:
        self.address = remote.address
        self._remote = remote
        self._cache = cache
        self._refusal = refusal  # why a path is left out by the rules
        self._turn = asyncio.Lock()
        self._state: GitState | None = None
        self._snapshot: Snapshot | None = None
        self._trouble: SourceError | None = None
        self._open: _Opened | None = None
        self._renewed = False

    async def state(self) -> GitState:
        """The commit that is read in this run."""
        async with self._turn:
            return await self._known_state()

    async def snapshot(self) -> Snapshot:
        """The files of that commit; trouble with it is the same for all who ask."""
        async with self._turn:
            if self._trouble is not None:
                raise self._trouble
            if self._snapshot is None:
                try:
                    self._snapshot = await self._taken()
                except SourceError as trouble:
                    self._trouble = trouble
                    raise
            return self._snapshot

    async def size(self, blob: str) -> int:
        """How large a file is; all files of the state that are missing come with it, in one request."""
        async with self._turn:
            try:
                return await self._brought(blob)
            except GitDamage:
                await self._renew()
                return await self._brought(blob)

    async def read(self, blob: str) -> bytes:
        """What a file holds; a clone that turns out to be damaged is made anew, once."""
        before = self._renewed
        size = await self.size(blob)
        try:
            return await (await self._opened()).reader.read(blob, size)
        except GitDamage:
            async with self._turn:
                if self._renewed == before:  # else somebody else met the damage first
                    await self._renew()
            size = await self.size(blob)
            return await (await self._opened()).reader.read(blob, size)

    async def close(self) -> None:
        """Let go of the clone, and of others that have become too many."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened.reader.close()
            opened.lease.close()
            await self._cache.tidy()

    async def _known_state(self) -> GitState:
        if self._trouble is not None:
            raise self._trouble
        if self._state is None:
            try:
                self._state = await self._remote.state()
            except SourceError as trouble:
                self._trouble = trouble
                raise
            self._cache.touch(self.address)
        return self._state

    async def _taken(self) -> Snapshot:
        state = await self._known_state()
        try:
            found = await (await self._opened()).clone.files(state.commit, self.address.folder)
        except GitDamage:
            await self._renew()
            found = await (await self._opened()).clone.files(state.commit, self.address.folder)
        if not found:
            raise GitError(f"{self.address.url} holds no files there: all its pages are kept")
        pages = pages_of(self.address, state.kind, state.branch)
        return await asyncio.to_thread(_let_in, found, pages, self.why_not)

    def why_not(self, path: bytes) -> str | None:
        """Why a file is left out by the rules, which see it from the folder that is read."""
        above = self.address.folder + b"/" if self.address.folder else b""
        seen = path.removeprefix(above)
        if not seen or not path.startswith(above):
            return None
        return self._refusal(seen.decode("utf-8", "surrogateescape"))

    async def _brought(self, blob: str) -> int:
        opened = await self._opened()
        if blob not in opened.sizes and not opened.brought:
            wanted = (
                {blob, *(file.blob for file in self._snapshot.files.values())} if self._snapshot else {blob}
            )
            opened.sizes.update(await opened.clone.sizes(wanted))
            missing = wanted - opened.sizes.keys()
            if missing:
                await self._fetch(opened, missing)
            opened.brought = True
        if blob in opened.absent:
            raise GitError(f"{self.address.url} names this file, but does not have it")
        if blob not in opened.sizes:
            raise opened.trouble or GitDamage(f"a file of {self.address.url} cannot be had")
        return opened.sizes[blob]

    async def _fetch(self, opened: _Opened, missing: set[str]) -> None:
        """Bring files; a far side that fails is not asked for each, one that lacks some is for the others."""
        parts = [missing]
        for _ in range(MOST_REQUESTS):
            if not parts:
                break
            part = parts.pop()
            try:
                await opened.clone.fetch_blobs(part)
            except GitError as trouble:
                is_damage = isinstance(trouble, GitDamage)
                if is_damage and not self._renewed:
                    raise
                lacking = trouble.named & part or (part if is_damage and len(part) == 1 else set())
                opened.absent |= lacking
                if not lacking and not is_damage:
                    opened.trouble = trouble
                    break
                parts += _halves(part) if not lacking else [part - lacking] if part - lacking else []
        else:
            opened.trouble = GitError(f"{self.address.url} lacks too many of the files that it names")
        opened.sizes.update(await opened.clone.sizes(missing))

    async def _opened(self) -> _Opened:
        if self._open is None:
            lease = await self._cache.open(self.address)
            clone = GitClone(self._remote, lease)
            self._open = _Opened(lease, clone, BlobReader(clone.reading()))
        return self._open

    async def _renew(self) -> None:
        """Throw a damaged clone away and fetch the same state again."""
        opened = await self._opened()
        await opened.reader.close()
        if self._renewed or not await opened.clone.discard():
            raise GitError(f"the clone of {self.address.url} is damaged, and stays so or is in use")
        self._renewed = True
        opened.sizes.clear()
        opened.absent.clear()
        opened.brought, opened.trouble = False, None
        try:
            await opened.clone.files((await self._known_state()).commit, self.address.folder)
        except GitError as trouble:
            self._trouble = trouble  # there is nothing left to read from
            raise


def _halves(blobs: set[str]) -> list[set[str]]:
    listed = sorted(blobs)
    middle = len(listed) // 2
    return [set(listed[:middle]), set(listed[middle:])]


def _let_in(found: Sequence[GitFile], pages: GitPages, refusal: Callable[[bytes], str | None]) -> Snapshot:
    files: dict[str, GitFile] = {}
    dropped: Counter[str] = Counter()
    for file in found:
        reason = file.unread or refusal(file.path)
        url = None if reason else pages.url(file.path)
        if url is None:
            dropped[reason or TOO_LONG] += 1
        else:
            files[url] = file
    return Snapshot(pages=pages, files=files, dropped=dropped)


class GitFetcher:
    """Shows the files of a repository as pages."""

    def __init__(self, repository: GitRepository, max_file_bytes: int) -> None:
        self._repository = repository
        self._max_bytes = max_file_bytes

    async def fetch(self, request: Request) -> Fetched:
        """One look at a file of the state that this run reads."""
        try:
            return await self._look(request)
        except SourceError as error:
            late = isinstance(error, GitError) and error.late
            outcome = Outcome.TIMEOUT if late else Outcome.FAILED
            return Failed(outcome=outcome, reason=str(error), hopeless=True)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Repositories know no robots.txt."""
        return None

    async def crawl_delay(self, url: str) -> float | None:
        """Files that are here need no pause."""
        return 0.0

    def state(self, origin: str) -> str:
        """Nothing has to be known about the host."""
        return "open"

    async def close(self) -> None:
        """End the process that reads, and let go of the clone."""
        await self._repository.close()

    async def _look(self, request: Request) -> Fetched:
        snapshot = await self._repository.snapshot()
        file = snapshot.files.get(request.url)
        if file is None:
            left_out = self._repository.why_not(snapshot.pages.path(request.url) or b"")
            return Gone(status_code=None, reason=f"left out: {left_out}" if left_out else None)
        blob = file.blob
        held = Validators(etag=blob)
        if request.validators is not None and request.validators.etag == blob:
            return NotModified(validators=held, status_code=None)
        size = await self._repository.size(blob)
        if size > self._max_bytes:
            most = f"files.max_file_bytes {self._max_bytes:,}"
            return _refused(f"{size:,} bytes, more than {most}")  # not for good: the limit may be raised
        data = await self._repository.read(blob)
        if size <= _LONGEST_POINTER and data.startswith(_POINTER):
            return _refused("kept in Git LFS: the repository itself holds only a pointer to it", held)
        return Body(url=request.url, data=data, media_type="", validators=held, status_code=None, proven=True)


def _refused(reason: str, validators: Validators | None = None) -> Refused:
    return Refused(outcome=Outcome.FAILED, reason=reason, validators=validators)
