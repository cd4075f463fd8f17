"""Looking at files: one version of each, whole, never outside the root, never for ever."""

import asyncio
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass

from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Outcome, Refused, Request, Validators
from afresh.urls.files import path_of

TRIES = 5  # to read a file that is being written
RACY_NS = 50_000_000  # a file written so shortly before it is read may change again under the same time
SETTLE_SECONDS = 0.02
COARSE_NS = 2_000_000_000  # the same where times are kept in whole seconds
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_BY_STEPS = os.open in os.supports_dir_fd and os.scandir in os.supports_fd  # not on Windows
_STEP = (
    getattr(os, "O_PATH", os.O_RDONLY)  # where a folder may be passed through but not listed
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """What bounds a look at a file."""

    max_bytes: int = 10_485_760
    trusts_times: bool = True  # False: a file is read whatever its size and time say
    symlinks: bool = False  # followed, if they lead to somewhere below the root
    single: bool = False  # the root is a file
    doubts_new: bool = True  # a file written just before it is read is read once more next time


class FileFetcher:
    """Reads the files below a root."""

    def __init__(self, root: str, options: FileOptions, why_not: Callable[[str], str | None]) -> None:
        self._root = root  # a path without links
        self._options = options
        self._why_not = why_not  # why an address is no part of the source, although a file may be there

    async def fetch(self, request: Request) -> Fetched:
        """One look at a file; `gone` is believed only while the root itself is there."""
        return await asyncio.to_thread(self._look, request)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Files know no robots.txt."""
        return None

    async def crawl_delay(self, url: str) -> float | None:
        """Files need no pause."""
        return 0.0

    def state(self, origin: str) -> str:
        """Nothing has to be known about a folder."""
        return "open"

    async def close(self) -> None:
        """Nothing is held open."""

    def _look(self, request: Request) -> Fetched:
        path = path_of(request.url)
        try:
            if (reason := self._why_not(request.url)) is not None:
                return self._gone(f"left out: {reason}")
            for _ in range(TRIES):
                seen = self._read(path, request)
                if seen is not None:
                    return seen
        except (FileNotFoundError, NotADirectoryError):
            return self._gone()
        except OSError as error:
            return Failed(outcome=Outcome.FAILED, reason=error.strerror or str(error))
        return Failed(outcome=Outcome.FAILED, reason="it is being written all the time")

    def _gone(self, reason: str = "") -> Fetched:
        """A file that is not there is gone; unless the whole folder is, which more likely is not mounted."""
        if self._stands():
            return Gone(status_code=None, reason=reason)
        return Failed(outcome=Outcome.FAILED, reason=f"{self._root} is not there, empty or another")

    def _stands(self) -> bool:
        """Whether the root is a file, or a folder that holds something, as it was when it was added."""
        try:
            handle = open_plainly(self._root, _FLAGS)
        except OSError:
            return False
        try:
            if self._options.single:
                return stat.S_ISREG(os.fstat(handle).st_mode)
            with os.scandir(handle if _BY_STEPS else self._root) as entries:
                return any(entries)
        except OSError:
            return False
        finally:
            os.close(handle)

    def _read(self, path: str, request: Request) -> Fetched | None:
        """The file as it is, or None if it changed while it was read."""
        inside = self._inside(path)
        if inside is None:
            return _refused("a link that leads out of the folder")
        handle = open_plainly(inside, _FLAGS)
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return _refused("not a regular file")
            held = Validators(size=before.st_size, mtime_ns=before.st_mtime_ns)
            if self._options.trusts_times and request.validators == held:
                return NotModified(validators=held, status_code=None)
            if before.st_size > self._options.max_bytes:
                most = f"files.max_file_bytes {self._options.max_bytes:,}"
                return _refused(f"{before.st_size:,} bytes, more than {most}")
            now = time.time_ns()
            data = _all_of(handle, self._options.max_bytes + 1)
            racy = _is_racy(before.st_mtime_ns, now)
            if racy and before.st_mtime_ns < now + COARSE_NS:
                time.sleep(SETTLE_SECONDS)  # it may be in the middle of being written
            after = os.stat(inside, follow_symlinks=False) if racy else os.fstat(handle)
        finally:
            os.close(handle)
        if _version(before) != _version(after) or len(data) != before.st_size:
            return None
        validators = Validators() if racy and self._options.doubts_new else held
        return Body(
            url=request.url, data=data, media_type="", validators=validators, status_code=None, proven=True
        )

    def _inside(self, path: str) -> str | None:
        """The path to open, without links, or None if it leads out of the root."""
        follows = self._options.symlinks or not _BY_STEPS
        real = os.path.realpath(path, strict=True) if follows else os.path.normpath(path)
        inside = real == self._root or real.startswith(self._root.rstrip("/") + "/")
        return real if inside else None


def open_plainly(path: str, flags: int) -> int:
    """Open an absolute path step by step: no folder on the way may be a link, not even one made just now."""
    if not _BY_STEPS:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))
    *folders, name = path.split("/")[1:]
    place = os.open("/", _STEP)
    try:
        for folder in folders:
            below = os.open(folder, _STEP, dir_fd=place)
            os.close(place)
            place = below
        return os.open(name or ".", flags | os.O_NOFOLLOW, dir_fd=place)
    finally:
        os.close(place)


def _refused(reason: str, validators: Validators | None = None) -> Refused:
    return Refused(outcome=Outcome.FAILED, reason=reason, validators=validators)


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _all_of(handle: int, most: int) -> bytes:
    parts, left = [], most
    while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _is_racy(mtime_ns: int, now_ns: int) -> bool:
    """Whether a later change could hide behind the same size and time."""
    window = COARSE_NS if mtime_ns % 1_000_000_000 == 0 else RACY_NS
    return mtime_ns > now_ns - window
