"""Read an archive as a source: each file in it is a page; size and checksum show whether it changed."""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from afresh.errors import SourceError
from afresh.files import open_regular_file
from afresh.model.fetch import Failed, Fetched, Gone, NotModified, Refused, Request
from afresh.model.records import ListedUrl
from afresh.ports import Clock
from afresh.sources.archive import readers
from afresh.sources.archive.paths import ZIP_ENDINGS, ArchiveEntry, entry_name, entry_url
from afresh.sources.archive.readers import ArchiveLimits, BadEntry, TarArchive, ZipArchive
from afresh.sources.folder.filter import FileFilter, FolderRules
from afresh.sources.registry import ListerBase, LocalFetcher, OpenedSource, SourceContext, SourceKind, local_body
from afresh.urls.files import path_of
from afresh.urls.scope import Globs

T = TypeVar("T")

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
RACY_SECONDS = 2.0  # a file modified less than this ago may change again without a new modification time


class _OpenArchive:
    """An open archive; `state` is a text with the size and times of its file when it was opened."""

    def __init__(self, path: Path, url: str, limits: ArchiveLimits) -> None:
        deadline = readers.OpeningDeadline(limits.seconds)
        with ExitStack() as files:
            try:
                self._file = file = files.enter_context(open_regular_file(path))
            except OSError as error:
                raise SourceError(f"the archive {path} cannot be opened: {error.strerror}") from error
            self.state = _state(os.fstat(file.fileno()))
            head = file.read(6)
            file.seek(0)
            make = readers.find_decompressor(head)
            self.archive: ZipArchive | TarArchive
            if head.startswith(_ZIP_STARTS) or (path.name.lower().endswith(ZIP_ENDINGS) and make is None):
                self.archive = ZipArchive(file, url, limits)
            else:
                if make is not None:
                    unpacked = files.enter_context(tempfile.TemporaryFile())
                    readers.decompress(file, unpacked, make, limits, deadline)
                self.archive = TarArchive(unpacked if make else file, url, limits, deadline)
            self.check()
            self._files = files.pop_all()

    def check(self) -> None:
        if _state(os.fstat(self._file.fileno())) != self.state:
            raise SourceError("the archive changed while it was read")

    def close(self) -> None:
        self._files.close()


class ArchiveFetcher(LocalFetcher):
    """Reads one archive in a thread, one request at a time; never writes a file under a name from the archive."""

    def __init__(
        self,
        path: Path,
        url: str,
        limits: ArchiveLimits | None = None,
        ignored: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._path, self.url = path, url
        self._limits = limits or ArchiveLimits()
        self.ignored = ignored  # returns why the rules exclude an existing entry; None if they accept it
        self._opened: _OpenArchive | None = None
        self._turn = asyncio.Lock()

    async def mark(self) -> tuple[str, float]:
        """Return a text that changes with the archive, and its modification time; raise SourceError if it is gone."""
        facts = await asyncio.to_thread(_facts_of, self._path)
        return _state(facts), facts.st_mtime

    async def entries(self) -> Mapping[str, ArchiveEntry]:
        return await self._in_turn(lambda: self._current().archive.entries)

    async def fetch(self, request: Request) -> Fetched:
        name = entry_name(self.url, request.url)
        if name is None:
            return Refused(reason=f"not in {self.url}")
        try:
            return await self._in_turn(lambda: self._fetch_entry(name, request))
        except BadEntry as error:
            return Failed(reason=str(error), hopeless=True)
        except (SourceError, OSError) as error:
            return Failed(reason=str(error))

    async def close(self) -> None:
        await self._in_turn(self._close)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        async with self._turn:
            return await asyncio.to_thread(work)

    def _fetch_entry(self, name: str, request: Request) -> Fetched:
        opened = self._current()
        entry = opened.archive.entries.get(name)
        if entry is None:
            return Gone(status_code=None)
        if (reason := self.ignored(name)) is not None:
            return Gone(status_code=None, reason=f"left out: {reason}")
        if request.validators is not None and request.validators.etag == entry.validators.etag:
            return NotModified(validators=entry.validators, status_code=None)
        if entry.refusal is not None:
            return Refused(reason=entry.refusal, validators=entry.validators)
        data = opened.archive.read(entry)
        opened.check()
        return local_body(request.url, data, entry.validators)

    def _current(self) -> _OpenArchive:
        if self._opened is not None and self._opened.state != _state(_facts_of(self._path)):
            self._close()
        if self._opened is None:
            self._opened = _OpenArchive(self._path, self.url, self._limits)
        return self._opened

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None


def _facts_of(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise SourceError(f"the archive {path} cannot be read: {error.strerror}") from error


def _state(facts: os.stat_result) -> str:
    return f"{facts.st_size}-{facts.st_mtime_ns}-{facts.st_ctime_ns}"


class ArchiveLister(ListerBase):
    kind = "archive"

    def __init__(self, archive: ArchiveFetcher, *, clock: Clock, mark: str | None = None, rules: str = "") -> None:
        self._archive, self._clock = archive, clock
        self._earlier, self._rules = mark, rules

    async def list(self) -> AsyncIterator[ListedUrl]:
        named, written = await self._archive.mark()
        state = f"{named}-{self._rules}"
        self.mark = state if self._clock().timestamp() - written > RACY_SECONDS else None
        self.unchanged = state == self._earlier
        if self.unchanged:
            return
        url, entries = self._archive.url, await self._archive.entries()
        if not entries:
            raise SourceError(f"the archive {url} is empty")
        dropped: Counter[str] = Counter()
        for entry in entries.values():
            reason = entry.refusal or self._archive.ignored(entry.name)
            if reason is None:
                yield ListedUrl(entry_url(url, entry.name), entry.name.count("/"), entry.validators)
            else:
                dropped[reason] += 1
        self.dropped = dropped

    def refusal(self, url: str, depth: int) -> str | None:
        return "not in the archive" if entry_name(self._archive.url, url) is None else None


def open_archive(context: SourceContext) -> OpenedSource:
    """Open an archive as a source; .gitignore files in the archive and symbolic links on disk are ignored."""
    files, rules = context.config.files, context.rules
    path = os.path.realpath(path_of(rules.root))
    inside = FolderRules(gitignore=False, symlinks=True, hidden=files.hidden, ignore=files.ignore)
    file_filter = FileFilter(path, inside, Globs(rules.include, rules.exclude))
    limits = ArchiveLimits(entry_bytes=files.max_file_bytes, entries=min(files.max_files, 100_000))
    fetcher = ArchiveFetcher(Path(path), rules.root, limits, file_filter.why_not)
    terms = f"{file_filter.terms}{limits!r}"
    return fetcher, ArchiveLister(fetcher, clock=context.clock, mark=context.mark, rules=terms)


KIND = SourceKind(open=open_archive)
