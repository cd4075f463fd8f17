"""Read a git repository as a source: a git process returns the files of one commit by their blob ids."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeVar

from afresh.config.sources import default_cache_dir
from afresh.dataclass import asdict, dataclass, field
from afresh.errors import SourceError
from afresh.model.fetch import Failed, Fetched, Gone, NotModified, Outcome, Refused, Request, Validators
from afresh.model.records import ListedUrl
from afresh.sources.folder.filter import reported_counts, repository_rules
from afresh.sources.git.address import GitFile, GitPages, GitState, is_lfs_pointer, pages_of, parse_git
from afresh.sources.git.cache import GitCache, GitClone
from afresh.sources.git.process import BlobReader, DamagedClone, GitError
from afresh.sources.git.remote import GitOptions, GitRemote
from afresh.sources.registry import ListerBase, LocalFetcher, OpenedSource, SourceContext, SourceKind, local_body

T = TypeVar("T")

MAX_REQUESTS = 50  # requests for missing files, per commit
TOO_LONG = "names too long for a URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSnapshot:
    pages: GitPages
    files: Mapping[str, GitFile]  # by page URL
    dropped: Mapping[str, int]  # reason to count


@dataclass(slots=True)
class _Opened:
    clone: GitClone
    reader: BlobReader
    sizes: dict[str, int] = field(default_factory=dict)
    is_fetched: bool = False  # all missing files were requested from the remote
    absent: set[str] = field(default_factory=set)  # files that the remote lists but does not have
    error: GitError | None = None  # why the remote did not send all requested files


class GitRepository:
    """A git repository during one run, which reads the commit that was current at its start."""

    def __init__(self, remote: GitRemote, cache: GitCache, refusal: Callable[[str], str | None]) -> None:
        self.address = remote.address
        self._remote = remote
        self._cache = cache
        self._refusal = refusal  # returns why the rules exclude a path; None if they accept it
        self._turn = asyncio.Lock()
        self._state: GitState | None = None
        self._snapshot: GitSnapshot | None = None
        self._error: SourceError | None = None
        self._open: _Opened | None = None
        self._renewed = False

    async def state(self) -> GitState:
        async with self._turn:
            with self._error_kept():
                return await self._read_state()

    async def snapshot(self) -> GitSnapshot:
        """Return the files of the commit; after an error, raise the same error on every call."""
        async with self._turn:
            with self._error_kept():
                if self._snapshot is None:
                    self._snapshot = await self._take_snapshot()
                return self._snapshot

    async def size(self, blob: str) -> int:
        """Return the size of a blob; if the clone lacks it, fetch all missing blobs of the commit."""
        async with self._turn:
            return await self._with_renewal(lambda: self._load_size(blob))

    async def read(self, blob: str) -> bytes:
        while True:
            before = self._renewed
            size = await self.size(blob)
            try:
                return await (await self._opened()).reader.read(blob, size)
            except DamagedClone:
                async with self._turn:
                    if self._renewed == before:  # otherwise another task has recreated the clone meanwhile
                        await self._renew()

    async def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.reader.close()
            opened.clone.lease.close()
            await asyncio.to_thread(self._cache.tidy)

    @contextmanager
    def _error_kept(self) -> Iterator[None]:
        """Store a SourceError that the block raises, and raise it again in all later calls."""
        if self._error is not None:
            raise self._error
        try:
            yield
        except SourceError as error:
            self._error = error
            raise

    async def _with_renewal(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except DamagedClone:
            await self._renew()
            return await work()

    async def _read_state(self) -> GitState:
        if self._state is None:
            self._state = await self._remote.state()
            self._cache.touch(self.address)
        return self._state

    async def _list_files(self) -> Sequence[GitFile]:
        state, opened = await self._read_state(), await self._opened()
        return await opened.clone.files(state.commit, self.address.folder)

    async def _take_snapshot(self) -> GitSnapshot:
        state = await self._read_state()
        if not (found := await self._with_renewal(self._list_files)):
            raise GitError(f"{self.address.url} has no files: check the folder; its stored pages are kept")
        pages = pages_of(self.address, state.kind, state.branch)
        return await asyncio.to_thread(_apply_rules, found, pages, self.why_not)

    def why_not(self, path: bytes) -> str | None:
        """Return why the rules exclude a file, or None; the rules apply to its path below the folder that is read."""
        above = self.address.folder + b"/" if self.address.folder else b""
        seen = path.removeprefix(above)
        if not seen or not path.startswith(above):
            return None
        return self._refusal(seen.decode("utf-8", "surrogateescape"))

    async def _load_size(self, blob: str) -> int:
        opened = await self._opened()
        if blob not in opened.sizes and not opened.is_fetched:
            files = self._snapshot.files.values() if self._snapshot else ()
            wanted = {blob, *(file.blob for file in files)}
            opened.sizes.update(await opened.clone.sizes(wanted))
            if missing := wanted - opened.sizes.keys():
                await self._fetch(opened, missing)
            opened.is_fetched = True
        if blob in opened.absent:
            raise GitError(f"{self.address.url} lists this file but does not contain it")
        if blob not in opened.sizes:
            raise opened.error or DamagedClone(f"a file of {self.address.url} is missing")
        return opened.sizes[blob]

    async def _fetch(self, opened: _Opened, missing: set[str]) -> None:
        """Fetch missing files; leave out those that the remote lacks, and stop after any other error."""
        parts = [missing]
        for _ in range(MAX_REQUESTS):
            if not parts:
                break
            part = parts.pop()
            try:
                await opened.clone.fetch_blobs(part)
            except GitError as error:
                is_damage = isinstance(error, DamagedClone)
                if is_damage and not self._renewed:
                    raise
                lacking = error.named & part or (part if is_damage and len(part) == 1 else set())
                opened.absent |= lacking
                if not lacking and not is_damage:
                    opened.error = error
                    break
                if lacking:
                    parts += [part - lacking] if part - lacking else []
                else:
                    listed = sorted(part)
                    parts += [set(listed[: len(listed) // 2]), set(listed[len(listed) // 2 :])]
        else:
            opened.error = GitError(
                f"{self.address.url}: too many of the files that the commit lists are missing on the server"
            )
        opened.sizes.update(await opened.clone.sizes(missing))

    async def _opened(self) -> _Opened:
        if self._open is None:
            clone = GitClone(self._remote, await self._cache.open(self.address))
            self._open = _Opened(clone, BlobReader(clone.reading()))
        return self._open

    async def _renew(self) -> None:
        """Delete a damaged clone and fetch the same commit again, at most once; raise GitError at the second call."""
        opened = await self._opened()
        await opened.reader.close()
        if self._renewed or not await opened.clone.lease.discard():
            raise GitError(
                f"the clone of {self.address.url} is damaged, but it is in use by another process, or this "
                "run has already replaced it: run `afresh refresh` again later"
            )
        self._renewed = True
        self._open = _Opened(opened.clone, opened.reader)
        with self._error_kept():  # if this fails, no later call can read a file
            await self._list_files()


def _apply_rules(found: Sequence[GitFile], pages: GitPages, refusal: Callable[[bytes], str | None]) -> GitSnapshot:
    files: dict[str, GitFile] = {}
    dropped: Counter[str] = Counter()
    for file in found:
        reason = file.unread or refusal(file.path)
        url = None if reason else pages.url(file.path)
        if url is None:
            dropped[reason or TOO_LONG] += 1
        else:
            files[url] = file
    return GitSnapshot(pages=pages, files=files, dropped=dropped)


class GitFetcher(LocalFetcher):
    def __init__(self, repository: GitRepository, max_file_bytes: int) -> None:
        self._repository = repository
        self._max_bytes = max_file_bytes

    async def fetch(self, request: Request) -> Fetched:
        try:
            return await self._fetch_file(request)
        except SourceError as error:
            late = isinstance(error, GitError) and error.late
            return Failed(outcome=Outcome.TIMEOUT if late else Outcome.FAILED, reason=str(error), hopeless=True)

    async def close(self) -> None:
        await self._repository.close()

    async def _fetch_file(self, request: Request) -> Fetched:
        snapshot = await self._repository.snapshot()
        if (file := snapshot.files.get(request.url)) is None:
            left_out = self._repository.why_not(snapshot.pages.path(request.url) or b"")
            return Gone(status_code=None, reason=f"left out: {left_out}" if left_out else None)
        blob = file.blob
        held = Validators(etag=blob)
        if request.validators is not None and request.validators.etag == blob:
            return NotModified(validators=held, status_code=None)
        size = await self._repository.size(blob)
        if size > self._max_bytes:
            most = f"files.max_file_bytes {self._max_bytes:,}"
            return Refused(reason=f"{size:,} bytes, more than {most}")  # without validators, as the limit may be raised
        data = await self._repository.read(blob)
        if is_lfs_pointer(data):
            why = "stored in Git LFS, which is not supported: the repository contains only a pointer"
            return Refused(reason=why, validators=held)
        return local_body(request.url, data, held)


class GitLister(ListerBase):
    kind = "git"

    def __init__(
        self, repository: GitRepository, *, mark: str | None = None, rules: str = "", max_files: int = 200_000
    ) -> None:
        self._repository = repository
        self._earlier = mark
        self._rules = rules  # a text that changes with the rules that decide which files are accepted
        self._max_files = max_files

    async def list(self) -> AsyncIterator[ListedUrl]:
        state = await self._repository.state()
        address = self._repository.address
        pages = pages_of(address, state.kind, state.branch)
        terms = "\n".join((pages.prefix, address.folder.hex(), self._rules))  # a change of these needs a new listing
        self.mark = f"{state.commit} {blake2b(os.fsencode(terms), digest_size=8).hexdigest()}"
        if state.is_ambiguous:
            name = address.ref
            self.notes = [f"{name} is a branch and a tag: the branch is read; write @refs/tags/{name} for the tag"]
        if self.mark == self._earlier:
            self.unchanged = True
            return
        found = await self._repository.snapshot()
        self.dropped = reported_counts(found.dropped)
        if len(found.files) > self._max_files:
            self.listing_errors = [
                f"the repository has {len(found.files):,} files; only {self._max_files:,} of them are read "
                "(files.max_files)"
            ]
        above = address.folder.count(b"/") + 1 if address.folder else 0
        for url, file in islice(found.files.items(), self._max_files):
            yield ListedUrl(url, file.path.count(b"/") - above, Validators(etag=file.blob))


def open_git(context: SourceContext) -> OpenedSource:
    """Open a git repository; keep clones that were made with the operator's keys apart from anonymous clones."""
    config, git = context.config, context.config.git
    options = GitOptions(
        **asdict(git),
        network=config.network,
        max_file_bytes=config.files.max_file_bytes,
        policy=context.policy,
        anonymous=context.anonymous,
    )
    rules = repository_rules(config, context.rules)
    folder = Path(git.cache_dir or default_cache_dir()).expanduser()
    if context.anonymous:
        folder = folder.with_name(f"{folder.name}-anonymous")
    cache = GitCache(folder, git.cache_max_bytes)
    repository = GitRepository(GitRemote(parse_git(context.root), options, cache.folder), cache, rules.why_not)
    lister = GitLister(repository, mark=context.mark, rules=rules.terms, max_files=rules.max_files)
    return GitFetcher(repository, options.max_file_bytes), lister


KIND = SourceKind(open=open_git)
