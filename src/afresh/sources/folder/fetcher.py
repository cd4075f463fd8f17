"""Read a folder or a file as a source: list its files, and read a consistent version of each."""

import asyncio
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from hashlib import blake2b
from typing import NamedTuple, Self

from afresh.config.sources import FilesSettings
from afresh.dataclass import dataclass, field
from afresh.errors import SourceError
from afresh.files import READ_FLAGS
from afresh.model.fetch import Failed, Fetched, Gone, NotModified, Refused, Request, Validators
from afresh.model.records import ListedUrl
from afresh.sources.folder.filter import IGNORE_FILE, FileFilter, folder_filter, reported_counts
from afresh.sources.folder.ignore import MAX_FILE_BYTES, MAX_RULE_CHARS, MAX_RULES, Level
from afresh.sources.registry import ListerBase, LocalFetcher, OpenedSource, SourceContext, SourceKind, local_body
from afresh.urls.files import file_url, path_of

MAX_READS = 5  # attempts to read a file that changes meanwhile
RACY_NS = 50_000_000  # a file modified less than this ago may change again with the same modification time
SETTLE_SECONDS = 0.02
COARSE_NS = 2_000_000_000  # the same, where modification times are in whole seconds
_BY_STEPS = os.open in os.supports_dir_fd and os.scandir in os.supports_fd  # False on Windows
_STEP = (
    getattr(os, "O_PATH", os.O_RDONLY)  # a folder may be traversable but not listable
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
TOO_LARGE = "larger than files.max_file_bytes"


@dataclass(frozen=True)
class FileFetcher(LocalFetcher):
    """Reads the files below a root folder, or the root itself if it is a single file."""

    root: str  # a path with symbolic links resolved
    settings: FilesSettings
    why_not: Callable[[str], str | None]  # returns why the rules exclude a URL; None if they accept it
    single: bool = False  # the root is a file
    rereads_recent: bool = True  # a file that was modified just before it is read is read again next time

    async def fetch(self, request: Request) -> Fetched:
        return await asyncio.to_thread(self._fetch_file, request)

    def _fetch_file(self, request: Request) -> Fetched:
        path = path_of(request.url)
        try:
            if (reason := self.why_not(request.url)) is not None:
                return self._gone(f"left out: {reason}")
            for _ in range(MAX_READS):
                if (seen := self._read(path, request)) is not None:
                    return seen
        except (FileNotFoundError, NotADirectoryError):
            return self._gone()
        except OSError as error:
            return Failed(reason=error.strerror or str(error))
        return Failed(reason="the file changed during every attempt to read it")

    def _gone(self, reason: str = "") -> Fetched:
        """Return Gone for a missing file, or Failed if the root is missing too: its disk may not be mounted."""
        if self._has_root():
            return Gone(status_code=None, reason=reason)
        return Failed(reason=f"{self.root} is missing, is empty or was replaced")

    def _has_root(self) -> bool:
        """Return whether the root is still there: a file, or a folder that is not empty."""
        try:
            handle = open_without_symlinks(self.root)
        except OSError:
            return False
        try:
            if self.single:
                return stat.S_ISREG(os.fstat(handle).st_mode)
            with os.scandir(handle if _BY_STEPS else self.root) as entries:
                return any(entries)
        except OSError:
            return False
        finally:
            os.close(handle)

    def _read(self, path: str, request: Request) -> Fetched | None:
        """Return the current content of a file, or None if it changed while it was being read."""
        inside = self._inside(path)
        if inside is None:
            return Refused(reason="a symbolic link that leads out of the folder")
        handle = open_without_symlinks(inside)
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return Refused(reason="not a regular file")
            held = Validators(size=before.st_size, mtime_ns=before.st_mtime_ns)
            if self.settings.verify == "stat" and request.validators == held:
                return NotModified(validators=held, status_code=None)
            if before.st_size > self.settings.max_file_bytes:
                limit = f"files.max_file_bytes {self.settings.max_file_bytes:,}"
                return Refused(reason=f"{before.st_size:,} bytes, more than {limit}")
            now = time.time_ns()
            with open(handle, "rb", closefd=False) as file:
                data = file.read(before.st_size + 1)  # one more byte, to notice that the file grew
            # a later change could have the same size and time
            window = COARSE_NS if before.st_mtime_ns % 1_000_000_000 == 0 else RACY_NS
            racy = before.st_mtime_ns > now - window
            if racy and before.st_mtime_ns < now + COARSE_NS:
                time.sleep(SETTLE_SECONDS)  # the file may be half written
            after = os.stat(inside, follow_symlinks=False) if racy else os.fstat(handle)
        finally:
            os.close(handle)
        if _version(before) != _version(after) or len(data) != before.st_size:
            return None
        validators = Validators() if racy and self.rereads_recent else held
        return local_body(request.url, data, validators)

    def _inside(self, path: str) -> str | None:
        """Return a path with its symbolic links resolved; None if the result is outside the root."""
        follows = self.settings.symlinks or not _BY_STEPS
        real = os.path.realpath(path, strict=True) if follows else os.path.normpath(path)
        return real if real == self.root or real.startswith(self.root.rstrip("/") + "/") else None


def open_without_symlinks(path: str) -> int:
    """Open an absolute path folder by folder; raise OSError if any part is a symbolic link, even a new one."""
    if not _BY_STEPS:
        return os.open(path, READ_FLAGS | getattr(os, "O_NOFOLLOW", 0))
    *folders, name = path.split("/")[1:]
    place = os.open("/", _STEP)
    try:
        for folder in folders:
            below = os.open(folder, _STEP, dir_fd=place)
            os.close(place)
            place = below
        return os.open(name or ".", READ_FLAGS | os.O_NOFOLLOW, dir_fd=place)
    finally:
        os.close(place)


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Folder(NamedTuple):
    prefix: str = ""  # the path of the folder, with a slash at the end
    depth: int = 0
    levels: tuple[Level, ...] = ()  # the ignore rules of the folders above
    target: str | None = None  # its resolved path if it was reached by a link


@dataclass(slots=True)
class FolderWalk:
    """Walks a folder and collects the files that its filter accepts; paths are relative to the root."""

    _filter: FileFilter
    files: list[tuple[str, int, int]] = field(default_factory=list)  # path, size, mtime_ns
    dropped: Counter[str] = field(default_factory=Counter)  # reason to count
    errors: list[str] = field(default_factory=list)  # messages about files and folders that could not be read
    _folders: list[_Folder] = field(default_factory=lambda: [_Folder()])  # to walk
    _linked: set[str] = field(default_factory=set)  # folders that were reached by a link

    def run(self, is_over: Callable[[], bool] = lambda: False) -> Self:
        """Walk until the end or until `is_over` returns True; raise OSError if the root cannot be listed."""
        while self._folders and not is_over():
            self._walk_folder(self._folders.pop())
        self.files.sort()
        most, setting = self._filter.rules.max_files, self._filter.rules.limited_by
        if len(self.files) > most:
            self.errors.append(f"more than {most:,} files: the others are left out (the limit is {setting})")
            del self.files[most:]
        return self

    def _walk_folder(self, folder: _Folder) -> None:
        prefix, levels = folder.prefix, folder.levels
        if folder.depth > self._filter.rules.max_depth:
            self.dropped["too deep"] += 1
            return
        try:
            with os.scandir(os.path.join(self._filter.root, prefix)) as entries:
                listed = list(entries)
            if any(entry.name == IGNORE_FILE for entry in listed):
                levels = self._filter.levels(prefix, folder.levels)
        except OSError as error:
            if not prefix:
                raise
            self.errors.append(f"{prefix} could not be listed: {error.strerror}")
            return
        if len(levels) > len(folder.levels) and not levels[-1][1].whole:
            self.errors.append(
                f"{prefix}{IGNORE_FILE} is too large: only the first {MAX_RULES:,} rules in the first "
                f"{MAX_FILE_BYTES:,} bytes are used, and none of more than {MAX_RULE_CHARS:,} characters"
            )
        folder = folder._replace(levels=levels)
        for entry in listed:
            try:
                if (reason := self._take(entry, folder)) is not None:
                    self.dropped[reason] += 1
            except OSError as error:  # the entry was deleted meanwhile, or access is denied
                self.errors.append(f"{prefix}{entry.name} could not be read: {error.strerror}")

    def _take(self, entry: "os.DirEntry[str]", folder: _Folder) -> str | None:
        """Add a file to `files`, or a folder to those still to walk; return why the entry is left out, or None."""
        prefix, depth, levels, target = folder
        path, reason = prefix + entry.name, None
        if target is not None or not entry.is_file(follow_symlinks=False):
            if entry.is_symlink():  # judged by its target
                target = os.path.realpath(entry.path)
                reason = self._why_not_link(entry, target)
            elif target is not None:
                target = f"{target}/{entry.name}"
                reason = self._filter.why_not_target(target)
            if reason is None and entry.is_dir():
                reason = self._filter.why_not_folder(path, entry.name, levels)
                if reason is None:
                    self._folders.append(_Folder(path + "/", depth + 1, levels, target))
                return reason
        reason = reason or self._filter.why_not_file(path, entry.name, levels)
        if reason is not None:
            return reason
        status = entry.stat()
        if not stat.S_ISREG(status.st_mode):
            return "special file"
        if status.st_size > self._filter.rules.max_bytes:
            return TOO_LARGE
        self.files.append((path, status.st_size, status.st_mtime_ns))
        return None

    def _why_not_link(self, entry: "os.DirEntry[str]", target: str) -> str | None:
        """Return why a link is not followed: disabled, leads out of the root, or its folder was walked already."""
        if not self._filter.rules.symlinks:
            return "symbolic link"
        if reason := self._filter.why_not_target(target):
            return reason
        if not entry.is_dir():
            return None
        parent = os.path.realpath(os.path.dirname(entry.path)) + "/"
        if parent.startswith(target.rstrip("/") + "/") or target in self._linked:
            return "link to a folder already listed"
        self._linked.add(target)
        return None


class FolderLister(ListerBase):
    kind = "folder"

    def __init__(
        self, file_filter: FileFilter, *, only: str | None = None, mark: str | None = None, verify: str = "stat"
    ) -> None:
        self._filter = file_filter
        self._only = only  # the name of the file if the source is a single file
        self._earlier = mark
        self._verify = verify
        self._over = threading.Event()

    async def list(self) -> AsyncIterator[ListedUrl]:
        root = self._filter.root
        try:
            found = await asyncio.to_thread(self._walk)
        except asyncio.CancelledError:
            self._over.set()  # a thread cannot be cancelled, only asked to stop
            raise
        except OSError as error:
            raise SourceError(f"{root} cannot be read ({error.strerror}): all its pages are kept") from error
        self.listing_errors = found.errors
        self.dropped = reported_counts(found.dropped)
        if self.unchanged:
            return
        for path, size, mtime_ns in found.files:
            url = file_url(os.path.join(root, path))
            # without a time the validators never match the stored ones, so that each file is read
            known = None if self._verify == "hash" else mtime_ns
            yield ListedUrl(url, path.count("/"), Validators(size=size, mtime_ns=known))

    def why_not(self, url: str) -> str | None:
        path = os.path.relpath(path_of(url), self._filter.root)
        if self._only is not None:
            return None if path == self._only else "another file"
        reason = self._filter.why_not(path)
        if reason is None and self._filter.rules.symlinks:
            return self._filter.why_not_target(os.path.realpath(path_of(url)))
        return reason

    def _walk(self) -> FolderWalk:
        """Walk the folder and compute its mark: a hash of the settings and of the path, size and time of each file."""
        self._check_root()
        if self._only is None:
            found = FolderWalk(self._filter).run(self._over.is_set)
        else:
            status = os.stat(os.path.join(self._filter.root, self._only), follow_symlinks=False)
            found = FolderWalk(self._filter, [(self._only, status.st_size, status.st_mtime_ns)])
        if not found.errors and self._verify == "stat":
            lines = [self._filter.terms, *(f"{path}\0{size}\0{mtime}" for path, size, mtime in found.files)]
            text = "\n".join(lines).encode("utf-8", "surrogateescape")
            self.mark = blake2b(text, digest_size=16).hexdigest()
            self.unchanged = self.mark == self._earlier
        return found

    def _check_root(self) -> None:
        root = os.path.join(self._filter.root, self._only or "").rstrip("/") or "/"
        real = os.path.realpath(root, strict=True)
        change = None
        if real != root:
            change = f"is now reached by a symbolic link, which leads to {real}"
        elif os.path.isdir(real) and self._only is not None:
            change = "was a file and is now a folder"
        elif os.path.isfile(real) and self._only is None:
            change = "was a folder and is now a file"
        if change is not None:
            raise SourceError(
                f"{root} {change}. All its pages are kept; if the change is intended, remove the source and crawl it "
                "again"
            )


def open_folder(context: SourceContext) -> OpenedSource:
    files, single, path = context.config.files, context.kind == "file", path_of(context.root)
    folder, name = os.path.split(path) if single else (path, None)
    file_filter = folder_filter(context.config, context.rules, folder)
    lister = FolderLister(file_filter, only=name, mark=context.mark, verify=files.verify)
    return FileFetcher(path, files, lister.why_not, single=single, rereads_recent=not context.for_kb), lister


KIND = SourceKind(open=open_folder)
