"""A folder or a file as a source: list its files and read a consistent version of each, inside the root."""

import asyncio
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from afresh.errors import SourceError
from afresh.model.fetch import Failed, Fetched, Gone, NotModified, Outcome, Request, Validators
from afresh.model.records import ListedUrl
from afresh.sources.folder.filter import IGNORE_FILE, FileFilter, counts_to_tell, sieve_for
from afresh.sources.folder.ignore import LONGEST, MOST_BYTES, MOST_RULES, Level
from afresh.sources.registry import (
    ListerBase,
    LocalFetcher,
    OpenedSource,
    SourceContext,
    SourceKind,
    local_body,
    look_failed,
)
from afresh.urls.files import file_url, path_of

TRIES = 5  # to read a file that is being written
RACY_NS = 50_000_000  # a file written this shortly before it is read may change again under the same time
SETTLE_SECONDS = 0.02
COARSE_NS = 2_000_000_000  # the same for times in whole seconds
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_BY_STEPS = os.open in os.supports_dir_fd and os.scandir in os.supports_fd  # not on Windows
_STEP = (
    getattr(os, "O_PATH", os.O_RDONLY)  # a folder may be traversable but not listable
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """The limits for reading a file."""

    max_bytes: int = 10_485_760
    trusts_times: bool = True  # False: a file is read whatever its size and time
    symlinks: bool = False  # follow links that lead to somewhere below the root
    single: bool = False  # the root is a file
    doubts_new: bool = True  # a file written just before it is read is read again next time


class FileFetcher(LocalFetcher):
    """Reads the files below a root."""

    def __init__(self, root: str, options: FileOptions, why_not: Callable[[str], str | None]) -> None:
        self._root = root  # a path without links
        self._options = options
        self._why_not = why_not  # why a URL is not part of the source, even if the file exists

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a file; it counts as gone only while the root itself exists."""
        return await asyncio.to_thread(self._look, request)

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
        """Return Gone, or Failed if the whole root is missing, which then is probably not mounted."""
        if self._stands():
            return Gone(status_code=None, reason=reason)
        return Failed(outcome=Outcome.FAILED, reason=f"{self._root} is not there, empty or another")

    def _stands(self) -> bool:
        """Return whether the root exists as the file that it was, or as a folder that is not empty."""
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
        """Return the file as it is, or None if it changed while it was read."""
        inside = self._inside(path)
        if inside is None:
            return look_failed("a link that leads out of the folder")
        handle = open_plainly(inside, _FLAGS)
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return look_failed("not a regular file")
            held = Validators(size=before.st_size, mtime_ns=before.st_mtime_ns)
            if self._options.trusts_times and request.validators == held:
                return NotModified(validators=held, status_code=None)
            if before.st_size > self._options.max_bytes:
                most = f"files.max_file_bytes {self._options.max_bytes:,}"
                return look_failed(f"{before.st_size:,} bytes, more than {most}")
            now = time.time_ns()
            data = _all_of(handle, self._options.max_bytes + 1)
            # a later change could have the same size and time
            window = COARSE_NS if before.st_mtime_ns % 1_000_000_000 == 0 else RACY_NS
            racy = before.st_mtime_ns > now - window
            if racy and before.st_mtime_ns < now + COARSE_NS:
                time.sleep(SETTLE_SECONDS)  # it may be half written
            after = os.stat(inside, follow_symlinks=False) if racy else os.fstat(handle)
        finally:
            os.close(handle)
        if _version(before) != _version(after) or len(data) != before.st_size:
            return None
        validators = Validators() if racy and self._options.doubts_new else held
        return local_body(request.url, data, validators)

    def _inside(self, path: str) -> str | None:
        """Return the path to open, without links, or None if it leads out of the root."""
        follows = self._options.symlinks or not _BY_STEPS
        real = os.path.realpath(path, strict=True) if follows else os.path.normpath(path)
        return real if real == self._root or real.startswith(self._root.rstrip("/") + "/") else None


def open_plainly(path: str, flags: int) -> int:
    """Open an absolute path step by step: no folder in it may be a link, not even one created just now."""
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


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _all_of(handle: int, most: int) -> bytes:
    parts, left = [], most
    while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


TOO_LARGE = "larger than files.max_file_bytes"
# path with a slash at its end, depth, ignore rules above it, and its real path if a link led there
_Folder = tuple[str, int, tuple[Level, ...], str | None]


@dataclass(slots=True)
class Walk:
    """The result of a walk; paths are relative to the root, with forward slashes."""

    files: list[tuple[str, int, int]] = field(default_factory=list)  # path, size, mtime_ns
    dropped: Counter[str] = field(default_factory=Counter)  # reason to count
    errors: list[str] = field(default_factory=list)  # what could not be listed


def walk(file_filter: FileFilter, is_over: Callable[[], bool] = lambda: False) -> Walk:
    """Return all files below a folder that its rules accept, sorted; raise OSError if it cannot be listed.

    Stop early and return the files so far once `is_over` returns True.
    """
    found, circles = Walk(), _Circles(file_filter)
    folders: list[_Folder] = [("", 0, (), None)]
    while folders and not is_over():
        prefix, depth, levels, target = folders.pop()
        if depth > file_filter.rules.max_depth:
            found.dropped["too deep"] += 1
            continue
        try:
            with os.scandir(os.path.join(file_filter.root, prefix)) as entries:
                listed = list(entries)
            if any(entry.name == IGNORE_FILE for entry in listed):
                levels = _with_own(levels, prefix, file_filter, found)
        except OSError as error:
            if not prefix:
                raise
            found.errors.append(f"{prefix} could not be listed: {error.strerror}")
            continue
        if target is not None:
            listed = _let_in(listed, target, file_filter, found)
        for entry in listed:
            try:
                if entry.is_file(follow_symlinks=False):
                    _take_file(entry, prefix, levels, file_filter, found)
                else:
                    _take_other(entry, (prefix, depth, levels, target), file_filter, circles, found, folders)
            except OSError as error:  # it vanished, or access is denied
                found.errors.append(f"{prefix}{entry.name} could not be looked at: {error.strerror}")
    found.files.sort()
    most, setting = file_filter.rules.max_files, file_filter.rules.limited_by
    if len(found.files) > most:
        found.errors.append(
            f"more than {most:,} files: only the first are looked at ({setting} sets the limit)"
        )
        del found.files[most:]
    return found


def _with_own(
    above: tuple[Level, ...], prefix: str, file_filter: FileFilter, found: Walk
) -> tuple[Level, ...]:
    """Return the ignore rules above a folder and its own; report if there are too many."""
    levels = file_filter.levels(prefix, above)
    if len(levels) > len(above) and not levels[-1][1].whole:
        found.errors.append(
            f"{prefix}{IGNORE_FILE} is too large: rules beyond {MOST_RULES:,}, beyond {MOST_BYTES:,} bytes "
            f"and those of more than {LONGEST:,} characters are not obeyed"
        )
    return levels


def _let_in(
    listed: "list[os.DirEntry[str]]", target: str, file_filter: FileFilter, found: Walk
) -> "list[os.DirEntry[str]]":
    """Return the entries of a linked folder that are not left out at their real path."""
    kept = []
    for entry in listed:
        # a link is judged by its target
        reason = None if entry.is_symlink() else file_filter.why_not_target(f"{target}/{entry.name}")
        if reason is None:
            kept.append(entry)
        else:
            found.dropped[reason] += 1
    return kept


def _take_file(
    entry: "os.DirEntry[str]", prefix: str, levels: tuple[Level, ...], file_filter: FileFilter, found: Walk
) -> None:
    path = prefix + entry.name
    reason = file_filter.why_not_file(path, entry.name, levels)
    if reason is None:
        status = entry.stat()
        if status.st_size <= file_filter.rules.max_bytes:
            found.files.append((path, status.st_size, status.st_mtime_ns))
            return
    found.dropped[reason or TOO_LARGE] += 1


def _take_other(
    entry: "os.DirEntry[str]",
    folder: _Folder,
    file_filter: FileFilter,
    circles: "_Circles",
    found: Walk,
    folders: list[_Folder],
) -> None:
    """Handle a folder, a link to a file or a folder, or a special file."""
    prefix, depth, levels, target = folder
    path = prefix + entry.name
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        reason = circles.why_not(entry, target)
    else:
        target = target and f"{target}/{entry.name}"
        reason = None
    if reason is None and entry.is_dir():
        reason = file_filter.why_not_folder(path, entry.name, levels)
        if reason is None:
            folders.append((path + "/", depth + 1, levels, target))
    elif reason is None and stat.S_ISREG(entry.stat().st_mode):
        _take_file(entry, prefix, levels, file_filter, found)
    elif reason is None:
        reason = file_filter.why_not_file(path, entry.name, levels) or "special file"
    if reason is not None:
        found.dropped[reason] += 1


class _Circles:
    """Follows links only if configured, only inside the root, and into no folder twice."""

    def __init__(self, file_filter: FileFilter) -> None:
        self._sieve = file_filter
        self._seen: set[str] = set()

    def why_not(self, entry: "os.DirEntry[str]", target: str) -> str | None:
        if not self._sieve.rules.symlinks:
            return "symbolic link"
        if reason := self._sieve.why_not_target(target):
            return reason
        if not entry.is_dir():
            return None
        place = os.path.realpath(os.path.dirname(entry.path)) + "/"
        if place.startswith(target.rstrip("/") + "/") or target in self._seen:
            return "link that goes in circles"
        self._seen.add(target)
        return None


class FolderLister(ListerBase):
    """Lists the files of a folder with size and time; an unchanged folder yields nothing."""

    kind = "folder"

    def __init__(
        self,
        file_filter: FileFilter,
        *,
        only: str | None = None,
        mark: str | None = None,
        verify: str = "stat",
    ) -> None:
        self._sieve = file_filter
        self._only = only  # the one file that is the source
        self._earlier = mark
        self._verify = verify
        self._over = threading.Event()

    async def list(self) -> AsyncIterator[ListedUrl]:
        """Yield the files with size and time; nothing if the folder is unchanged since its mark."""
        root = self._sieve.root
        try:
            found = await asyncio.to_thread(self._walked)
        except asyncio.CancelledError:
            self._over.set()  # a thread cannot be cancelled, only asked to stop
            raise
        except OSError as error:
            raise SourceError(f"{root} cannot be read ({error.strerror}): all its pages are kept") from error
        self.listing_errors = found.errors
        self.dropped = counts_to_tell(found.dropped)
        if self.unchanged:
            return
        for path, size, mtime_ns in found.files:
            url = file_url(os.path.join(root, path))
            # a size alone never equals stored validators, so each file is read
            known = None if self._verify == "hash" else mtime_ns
            yield ListedUrl(url, path.count("/"), Validators(size=size, mtime_ns=known))

    def why_not(self, url: str) -> str | None:
        """Return why a file is not part of the folder, or None."""
        path = os.path.relpath(path_of(url), self._sieve.root)
        if self._only is not None:
            return None if path == self._only else "another file"
        reason = self._sieve.why_not(path)
        if reason is None and self._sieve.rules.symlinks:
            return self._sieve.why_not_target(os.path.realpath(path_of(url)))
        return reason

    def _walked(self) -> Walk:
        """Walk the folder and compute its mark; the same mark means that all files are the same."""
        self._check_root()
        if self._only is None:
            found = walk(self._sieve, self._over.is_set)
        else:
            status = os.stat(os.path.join(self._sieve.root, self._only), follow_symlinks=False)
            found = Walk(files=[(self._only, status.st_size, status.st_mtime_ns)])
        if not found.errors and self._verify == "stat":
            rules = f"{self._sieve.rules!r}{self._sieve.wishes!r}"
            lines = [rules, *(f"{path}\0{size}\0{mtime}" for path, size, mtime in found.files)]
            text = "\n".join(lines).encode("utf-8", "surrogateescape")
            self.mark = blake2b(text, digest_size=16).hexdigest()
            self.unchanged = self.mark == self._earlier
        return found

    def _check_root(self) -> None:
        """Raise SourceError if the root now is or contains a link, or changed between file and folder."""
        root = os.path.join(self._sieve.root, self._only or "").rstrip("/") or "/"
        real = os.path.realpath(root, strict=True)
        change = None
        if real != root:
            change = f"is reached by a symbolic link now, which leads to {real}"
        elif os.path.isdir(real) and self._only is not None:
            change = "was a file and is a folder now"
        elif os.path.isfile(real) and self._only is None:
            change = "was a folder and is a file now"
        if change is not None:
            raise SourceError(
                f"{root} {change}: all its pages are kept; if that is meant, "
                "remove the source and crawl it again"
            )


def open_folder(context: SourceContext) -> OpenedSource:
    """Open a folder or a single file; its root was resolved when added, and later links are not followed."""
    files, single, path = context.config.files, context.kind == "file", path_of(context.root)
    folder, name = os.path.split(path) if single else (path, None)
    file_filter = sieve_for(context.config, context.rules, folder)
    lister = FolderLister(file_filter, only=name, mark=context.mark, verify=files.verify)
    options = FileOptions(
        max_bytes=files.max_file_bytes,
        trusts_times=files.verify == "stat",
        symlinks=files.symlinks,
        single=single,
        doubts_new=not context.for_kb,
    )
    return FileFetcher(path, options, lister.why_not), lister


KIND = SourceKind(open=open_folder)
