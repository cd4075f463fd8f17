"""One look into an archive: its entries are pages, its directory tells which of them changed."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Outcome, Refused, Request
from afresh.sources.archive.limits import BadEntry, Deadline, Unpacking, open_regular, plain
from afresh.sources.archive.paths import ZIP_ENDINGS, Entry, entry_name
from afresh.sources.archive.tar import TarArchive
from afresh.sources.archive.zip import ZipArchive

T = TypeVar("T")

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_GZIP_START = b"\x1f\x8b"


class _Opened:
    """An archive that is open, and the state of the file that was opened."""

    def __init__(self, path: Path, url: str, limits: Unpacking) -> None:
        deadline = Deadline(limits.seconds)
        self._file = open_regular(path)
        try:
            self.state = _state(os.fstat(self._file.fileno()))
            self._named_zip = path.name.lower().endswith(ZIP_ENDINGS)
            self.archive = self._read(url, limits, deadline)
            self.check()
        except BaseException:
            self._file.close()
            raise

    def _read(self, url: str, limits: Unpacking, deadline: Deadline) -> ZipArchive | TarArchive:
        if self._is_zip():
            return ZipArchive(self._file, url, limits)
        unpacked = plain(self._file, limits, deadline)
        try:
            return TarArchive(unpacked, url, limits, deadline)
        except BaseException:
            unpacked.close()
            raise

    def _is_zip(self) -> bool:
        head = self._file.read(4)
        self._file.seek(0)
        return head in _ZIP_STARTS or (self._named_zip and not head.startswith(_GZIP_START))

    def check(self) -> None:
        """Raise a SourceError if somebody wrote into the file since it was opened."""
        if _state(os.fstat(self._file.fileno())) != self.state:
            raise SourceError("the archive changed while it was read")

    def close(self) -> None:
        """Let go of the file."""
        self.archive.close()
        self._file.close()


class ArchiveFetcher:
    """Reads the entries of one archive (ZIP, tar, compressed tar); nothing of it is ever written by its name.

    The archive is opened when it is first needed and again when the file was replaced. All work is done in a
    thread, one piece at a time.
    """

    def __init__(
        self,
        path: Path,
        url: str,
        limits: Unpacking | None = None,
        ignored: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._path, self._url = path, url
        self._limits = limits or Unpacking()
        self._ignored = ignored  # why the entry of a name is no part of the source, although it is there
        self._opened: _Opened | None = None
        self._turn = asyncio.Lock()

    async def mark(self) -> tuple[str, float]:
        """What names the archive as it is now, and when it was written; SourceError if it is not there."""
        facts = await asyncio.to_thread(_facts_of, self._path)
        return _state(facts), facts.st_mtime

    async def entries(self) -> Mapping[str, Entry]:
        """All that is in the archive, by name; SourceError if it cannot be read at all."""
        return await self._in_turn(lambda: self._current().archive.entries)

    async def fetch(self, request: Request) -> Fetched:
        """Look at one entry."""
        name = entry_name(self._url, request.url)
        if name is None:
            return Refused(outcome=Outcome.FAILED, reason=f"not in {self._url}")
        try:
            return await self._in_turn(lambda: self._look(name, request))
        except BadEntry as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error), hopeless=True)
        except (SourceError, OSError) as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error))

    async def refusal(self, url: str) -> None:
        """Nothing keeps us from an archive that can be read."""

    async def crawl_delay(self, url: str) -> float | None:
        """An archive needs no pause."""
        return 0.0

    def state(self, origin: str) -> str:
        """Nothing has to be known about an archive."""
        return "open"

    async def close(self) -> None:
        """Let go of the file."""
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
        return Body(
            url=request.url,
            data=data,
            media_type="",
            validators=entry.validators,
            status_code=None,
            proven=True,
        )

    def _current(self) -> _Opened:
        """The archive as it is now: opened again where the file is not the one that was read."""
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
