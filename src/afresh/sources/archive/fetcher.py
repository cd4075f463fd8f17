"""An archive as a source: its entries are pages, and its directory lists them with checksums."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from afresh.errors import SourceError
from afresh.model.fetch import Failed, Fetched, Gone, NotModified, Outcome, Refused, Request
from afresh.model.records import ListedUrl
from afresh.ports import Clock
from afresh.sources.archive.paths import ZIP_ENDINGS, ArchiveEntry, entry_name, entry_url
from afresh.sources.archive.readers import (
    ArchiveLimits,
    BadEntry,
    OpeningDeadline,
    TarArchive,
    ZipArchive,
    open_regular,
    plain,
)
from afresh.sources.folder.filter import FileFilter, FolderRules
from afresh.sources.registry import (
    ListerBase,
    LocalFetcher,
    OpenedSource,
    SourceContext,
    SourceKind,
    local_body,
)
from afresh.urls.files import path_of
from afresh.urls.scope import Globs

T = TypeVar("T")

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")


class _Opened:
    """An open archive, and the state of its file when it was opened."""

    def __init__(self, path: Path, url: str, limits: ArchiveLimits) -> None:
        deadline = OpeningDeadline(limits.seconds)
        self._file = open_regular(path)
        try:
            self.state = _state(os.fstat(self._file.fileno()))
            head = self._file.read(4)
            self._file.seek(0)
            named_zip = path.name.lower().endswith(ZIP_ENDINGS)
            if head in _ZIP_STARTS or (named_zip and not head.startswith(b"\x1f\x8b")):
                self.archive: ZipArchive | TarArchive = ZipArchive(self._file, url, limits)
            else:
                self.archive = self._open_tar(url, limits, deadline)
            self.check()
        except BaseException:
            self._file.close()
            raise

    def _open_tar(self, url: str, limits: ArchiveLimits, deadline: OpeningDeadline) -> TarArchive:
        unpacked = plain(self._file, limits, deadline)
        try:
            return TarArchive(unpacked, url, limits, deadline)
        except BaseException:
            unpacked.close()
            raise

    def check(self) -> None:
        """Raise SourceError if the file was changed since it was opened."""
        if _state(os.fstat(self._file.fileno())) != self.state:
            raise SourceError("the archive changed while it was read")

    def close(self) -> None:
        self.archive.close()
        self._file.close()


class ArchiveFetcher(LocalFetcher):
    """Reads the entries of one archive (ZIP, tar, compressed tar); never writes a file with a name from it.

    The archive is opened when first needed, and again if the file was replaced. All work is done in a thread,
    one task at a time.
    """

    def __init__(
        self,
        path: Path,
        url: str,
        limits: ArchiveLimits | None = None,
        ignored: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._path, self._url = path, url
        self._limits = limits or ArchiveLimits()
        self._ignored = ignored  # why an entry is not part of the source, although it exists
        self._opened: _Opened | None = None
        self._turn = asyncio.Lock()

    async def mark(self) -> tuple[str, float]:
        """Return the current state of the file and its time; raise SourceError if it is missing."""
        facts = await asyncio.to_thread(_facts_of, self._path)
        return _state(facts), facts.st_mtime

    async def entries(self) -> Mapping[str, ArchiveEntry]:
        """Return all entries by name; raise SourceError if the archive cannot be read."""
        return await self._in_turn(lambda: self._current().archive.entries)

    async def fetch(self, request: Request) -> Fetched:
        """Fetch one entry."""
        name = entry_name(self._url, request.url)
        if name is None:
            return Refused(outcome=Outcome.FAILED, reason=f"not in {self._url}")
        try:
            return await self._in_turn(lambda: self._look(name, request))
        except BadEntry as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error), hopeless=True)
        except (SourceError, OSError) as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error))

    async def close(self) -> None:
        await self._in_turn(self._close)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        async with self._turn:
            return await asyncio.to_thread(work)

    def _look(self, name: str, request: Request) -> Fetched:
        opened = self._current()
        entry = opened.archive.entries.get(name)
        if entry is None:
            return Gone(status_code=None)
        if (reason := self._ignored(name)) is not None:
            return Gone(status_code=None, reason=f"left out: {reason}")
        if request.validators is not None and request.validators.etag == entry.validators.etag:
            return NotModified(validators=entry.validators, status_code=None)
        if entry.refusal is not None:
            return Refused(outcome=Outcome.FAILED, reason=entry.refusal, validators=entry.validators)
        data = opened.archive.read(entry)
        opened.check()
        return local_body(request.url, data, entry.validators)

    def _current(self) -> _Opened:
        """Return the open archive; reopen it if the file was replaced."""
        if self._opened is not None and self._opened.state != _state(_facts_of(self._path)):
            self._close()
        if self._opened is None:
            self._opened = _Opened(self._path, self._url, self._limits)
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


RACY_SECONDS = 2.0  # a file written this shortly before may be written again without a visible change


class ArchiveLister(ListerBase):
    """Lists the files in an archive, with validators that show changes."""

    kind = "archive"

    def __init__(
        self,
        url: str,
        archive: ArchiveFetcher,
        *,
        clock: Clock,
        mark: str | None = None,
        rules: str = "",
        ignored: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._url, self._archive, self._clock = url, archive, clock
        self._earlier, self._rules, self._ignored = mark, rules, ignored

    async def list(self) -> AsyncIterator[ListedUrl]:
        """Yield the entries that are pages; raise SourceError if the archive is unreadable or empty."""
        named, written = await self._archive.mark()
        state = f"{named}-{self._rules}"
        self.mark = state if self._clock().timestamp() - written > RACY_SECONDS else None
        self.unchanged = state == self._earlier
        if self.unchanged:
            return
        entries = await self._archive.entries()
        if not entries:
            raise SourceError(f"the archive {self._url} is empty")
        dropped: Counter[str] = Counter()
        for entry in entries.values():
            reason = entry.refusal or self._ignored(entry.name)
            if reason is None:
                yield ListedUrl(entry_url(self._url, entry.name), entry.name.count("/"), entry.validators)
            else:
                dropped[reason] += 1
        self.dropped = dropped

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a URL is not in the archive, or None; files that the rules leave out count as gone."""
        return "not in the archive" if entry_name(self._url, url) is None else None


def open_archive(context: SourceContext) -> OpenedSource:
    """Open an archive; no .gitignore and no links on disk are considered."""
    files, rules = context.config.files, context.rules
    path = os.path.realpath(path_of(rules.root))
    inside = FolderRules(gitignore=False, symlinks=True, hidden=files.hidden, ignore=files.ignore)
    file_filter = FileFilter(path, inside, Globs(rules.include, rules.exclude))
    limits = ArchiveLimits(entry_bytes=files.max_file_bytes, entries=min(files.max_files, 100_000))
    fetcher = ArchiveFetcher(Path(path), rules.root, limits, file_filter.why_not)
    lister = ArchiveLister(
        rules.root,
        fetcher,
        clock=context.clock,
        mark=context.mark,
        rules=f"{file_filter.rules!r}{file_filter.wishes!r}{limits!r}",
        ignored=file_filter.why_not,
    )
    return fetcher, lister


KIND = SourceKind(open=open_archive)
