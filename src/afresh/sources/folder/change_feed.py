"""Hearing of changes to files: what the operating system tells, as watchfiles passes it on.

Of an overflow of the system's queue watchfiles tells nothing: `watch/watcher.py` lists again after a burst.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from afresh.model.records import Listed
from afresh.ports import Sifted
from afresh.sources.folder.filter import HIDDEN, IGNORE_FILE, IGNORED, Sieve
from afresh.urls.files import file_url

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP_MS = 50  # how often the thread looks whether something was heard, or whether it is to end
GATHER_MS = 200  # how long it gathers what keeps coming
POLL_MS = 1_000
POLLING, POLL_DELAY = "WATCHFILES_FORCE_POLLING", "WATCHFILES_POLL_DELAY_MS"

Heard = Callable[[Sequence[str]], None]
Lost = Callable[[str], None]


class FileEvents:
    """Hears of changes below a folder, or to one file that may be replaced; fulfils `ports.Lookout`."""

    def __init__(self, root: str, sieve: Sieve | None) -> None:
        self._named = root
        self.place = os.path.realpath(root)
        self._sieve = sieve  # None: whatever happens at the root concerns all of the source
        self._single = not os.path.isdir(self.place)
        self._ground = os.path.dirname(self.place) if self._single else self.place
        self._identity: tuple[int, int] | None = None
        self._ending = threading.Event()

    def open(self, heard: Heard, lost: Lost) -> None:
        """Tell of paths from now on, in a thread; OSError if the system cannot watch the place."""
        from watchfiles._rust_notify import RustNotify

        os.stat(self.place)
        if self._sieve is not None and self.place != self._named:
            raise OSError(f"{self._named} is reached by a symbolic link now")
        self._identity = _identity(self._ground)
        polls, delay = _polling()
        try:
            notify = RustNotify([self._ground], False, polls, delay, not self._single, False)
        except RuntimeError as error:
            raise OSError(str(error)) from error
        threading.Thread(
            target=self._listen, args=(notify, heard, lost), name="afresh-watch", daemon=True
        ).start()

    def close(self) -> None:
        """End the thread, soon."""
        self._ending.set()

    def stands(self) -> bool:
        """Whether the root is there and is still the one that was opened, not another in its place."""
        try:
            return os.path.realpath(self._named) == self.place and _identity(self._ground) == self._identity
        except OSError:
            return False

    def sift(self, paths: Iterable[str]) -> Sifted:
        """Files that belong to the source, addresses without such a file, or all of it."""
        if self._sieve is None or self._single:
            return Sifted(everything=self.place in set(paths))
        there: list[Listed] = []
        others: list[str] = []
        for path in sorted(paths):
            if path == self.place:
                continue
            found = self._judge(path, path[len(self._ground.rstrip("/")) + 1 :], self._sieve)
            if isinstance(found, Listed):
                there.append(found)
            elif isinstance(found, str):
                others.append(found)
            elif found:
                return Sifted(everything=True)
        return Sifted(there, others)

    def _judge(self, path: str, relative: str, sieve: Sieve) -> Listed | str | bool:
        """A file, an address where a page may have been, True for all of the source, False for nothing."""
        folder, _, name = relative.rpartition("/")
        try:
            if name == IGNORE_FILE and sieve.rules.gitignore:
                return sieve.why_not_within(folder) is None
            reason = sieve.why_not(relative)
            if reason in (HIDDEN, IGNORED):
                return False
            mode = os.stat(path, follow_symlinks=sieve.rules.symlinks).st_mode
            if stat.S_ISDIR(mode):
                return sieve.why_not_within(relative) is None
        except OSError:  # it is gone, a folder above it is a file now, or it may not be looked at
            return file_url(path)
        if reason is None and stat.S_ISREG(mode):
            return Listed(file_url(path), relative.count("/"))
        return file_url(path)

    def _listen(self, notify: "RustNotify", heard: Heard, lost: Lost) -> None:
        try:
            with notify:
                while isinstance(changes := notify.watch(GATHER_MS, STEP_MS, 0, self._ending), set):
                    heard([path for _, path in changes])
        except Exception as error:  # what watchfiles raises has no common name
            if not self._ending.is_set():
                lost(str(error))


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _polling() -> tuple[bool, int]:
    """Whether to compare again and again instead of hearing, by the variables of watchfiles."""
    wanted = os.environ.get(POLLING, "").lower() not in ("", "0", "false", "disable", "disabled")
    delay = os.environ.get(POLL_DELAY, "")
    return wanted, int(delay) if delay.isdecimal() else POLL_MS
