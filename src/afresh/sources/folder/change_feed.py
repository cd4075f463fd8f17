"""Watch files for changes with watchfiles.

watchfiles does not report that the system lost events after too many changes at once. Therefore
`watch/watcher.py` lists the folder again after a burst of changes.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from afresh.config import Config
from afresh.model.records import ListedUrl
from afresh.ports import ChangedPaths, ChangeFeed
from afresh.sources.folder.filter import HIDDEN, IGNORE_FILE, IGNORED, FileFilter, folder_filter
from afresh.urls.files import file_url, path_of
from afresh.urls.scope import Rules

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP_MS = 50  # how often the thread checks for changes, and whether it has to stop
GATHER_MS = 200  # how long the thread collects changes before it reports them together
POLL_MS = 1_000
POLLING, POLL_DELAY = "WATCHFILES_FORCE_POLLING", "WATCHFILES_POLL_DELAY_MS"

OnChange = Callable[[Sequence[str]], None]
OnLoss = Callable[[str], None]


class FileEvents:
    """Reports changes below a folder, or of a single file; implements `ports.ChangeFeed`."""

    def __init__(self, root: str, file_filter: FileFilter | None) -> None:
        self._root = root
        self.place = os.path.realpath(root)
        self._filter = file_filter  # None: any change of the root affects the whole source
        self._single = not os.path.isdir(self.place)
        self._folder = os.path.dirname(self.place) if self._single else self.place
        self._identity: tuple[int, int] | None = None
        self._stop = threading.Event()

    def open(self, on_change: OnChange, on_loss: OnLoss) -> None:
        """Start a thread that reports changed paths; raise OSError if the system cannot watch the root."""
        from watchfiles._rust_notify import RustNotify

        os.stat(self.place)
        if self._filter is not None and self.place != self._root:
            raise OSError(f"{self._root} was replaced by a symbolic link, or a folder above it was")
        self._identity = _identity(self._folder)
        polls = os.environ.get(POLLING, "").lower() not in ("", "0", "false", "disable", "disabled")
        delay = os.environ.get(POLL_DELAY, "")
        every = int(delay) if delay.isdecimal() else POLL_MS
        try:
            notify = RustNotify([self._folder], False, polls, every, not self._single, False)
        except RuntimeError as error:
            raise OSError(str(error)) from error
        threading.Thread(
            target=self._listen, args=(notify, on_change, on_loss), name="afresh-watch", daemon=True
        ).start()

    def close(self) -> None:
        self._stop.set()

    def is_intact(self) -> bool:
        try:
            return os.path.realpath(self._root) == self.place and _identity(self._folder) == self._identity
        except OSError:
            return False

    def classify(self, paths: Iterable[str]) -> ChangedPaths:
        """Return what to check after changes of `paths`: accepted files, URLs of other paths, or the whole source."""
        if self._filter is None or self._single:
            return ChangedPaths(everything=self.place in set(paths))
        files: list[ListedUrl] = []
        other_urls: list[str] = []
        for path in sorted(paths):
            if path == self.place:
                continue
            found = self._judge(path, path[len(self._folder.rstrip("/")) + 1 :], self._filter)
            if isinstance(found, ListedUrl):
                files.append(found)
            elif isinstance(found, str):
                other_urls.append(found)
            elif found:
                return ChangedPaths(everything=True)
        return ChangedPaths(files, other_urls)

    def _judge(self, path: str, relative: str, file_filter: FileFilter) -> ListedUrl | str | bool:
        """Return the file at a path if the filter accepts it, else its URL.

        For a folder or an ignore file, return whether to list the source again; for a hidden or ignored path, False.
        """
        folder, _, name = relative.rpartition("/")
        try:
            if name == IGNORE_FILE and file_filter.rules.gitignore:
                return file_filter.why_not_within(folder) is None
            reason = file_filter.why_not(relative)
            if reason in (HIDDEN, IGNORED):
                return False
            mode = os.stat(path, follow_symlinks=file_filter.rules.symlinks).st_mode
            if stat.S_ISDIR(mode):
                return file_filter.why_not_within(relative) is None
        except OSError:  # the file is gone, a folder above it is now a file, or access is denied
            return file_url(path)
        if reason is None and stat.S_ISREG(mode):
            return ListedUrl(file_url(path), relative.count("/"))
        return file_url(path)

    def _listen(self, notify: "RustNotify", on_change: OnChange, on_loss: OnLoss) -> None:
        try:
            with notify:
                while isinstance(changes := notify.watch(GATHER_MS, STEP_MS, 0, self._stop), set):
                    on_change([path for _, path in changes])
        except Exception as error:  # watchfiles raises exceptions without a common base
            if not self._stop.is_set():
                on_loss(str(error))


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def change_feed_of(config: Config, rules: Rules, kind: str) -> ChangeFeed:
    """Return the change feed of a source; for a folder, the feed leaves out files that the rules exclude."""
    path = path_of(rules.root)
    return FileEvents(path, folder_filter(config, rules, path) if kind == "folder" else None)
