"""A folder as a source: the files below it, told apart by size and time, or by what they hold."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b

from afresh.errors import SourceError
from afresh.model.fetch import Validators
from afresh.model.records import Listed
from afresh.sources.folder.filter import HIDDEN, UNWANTED, Sieve
from afresh.sources.folder.walk import Walk, walk
from afresh.urls.files import file_url, path_of

_ANEW = "remove the source and crawl it again"
UNTOLD = frozenset({HIDDEN, UNWANTED})  # what nobody needs to be told


class FolderLister:
    """Lists the files of a folder with size and time; a folder that is as it was is not even compared."""

    kind = "folder"

    def __init__(
        self, sieve: Sieve, *, only: str | None = None, mark: str | None = None, verify: str = "stat"
    ) -> None:
        self._sieve = sieve
        self._only = only  # the one file that is the source
        self._earlier = mark
        self._verify = verify
        self._over = threading.Event()
        self.mark: str | None = None
        self.unchanged = False
        self.listing_errors: Sequence[str] = ()
        self.notes: Sequence[str] = ()
        self.dropped: Mapping[str, int] = {}

    async def list(self) -> AsyncIterator[Listed]:
        """The files with what tells whether they changed; none if the folder is as its mark says."""
        root = self._sieve.root
        try:
            found = await asyncio.to_thread(self._walked)
        except asyncio.CancelledError:
            self._over.set()  # a thread cannot be cancelled, only asked
            raise
        except OSError as error:
            raise SourceError(f"{root} cannot be read ({error.strerror}): all its pages are kept") from error
        self.listing_errors = found.errors
        self.dropped = {why: number for why, number in found.dropped.items() if why not in UNTOLD}
        if self.unchanged:
            return
        for path, size, mtime_ns in found.files:
            url = file_url(os.path.join(root, path))
            yield Listed(url, path.count("/"), self._validators(size, mtime_ns))

    def walks(self, url: str) -> bool:
        """No file is found by links."""
        return False

    def refusal(self, url: str, depth: int) -> str | None:
        """Nothing is refused beforehand: what the rules leave out is told as gone."""
        return None

    def why_not(self, url: str) -> str | None:
        """Why a file is not part of the folder, or None."""
        path = os.path.relpath(path_of(url), self._sieve.root)
        if self._only is not None:
            return None if path == self._only else "another file"
        reason = self._sieve.why_not(path)
        if reason is None and self._sieve.rules.symlinks:
            return self._sieve.why_not_target(os.path.realpath(path_of(url)))
        return reason

    def _walked(self) -> Walk:
        """The walk, and what it means: the same mark means that every file is the same."""
        self._check_root()
        found = walk(self._sieve, self._over.is_set) if self._only is None else self._single(self._only)
        if not found.errors and self._verify == "stat":
            self.mark = self._digest(found)
            self.unchanged = self.mark == self._earlier
        return found

    def _check_root(self) -> None:
        """A root is resolved once, when it is added: what leads elsewhere later is not followed."""
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
            raise SourceError(f"{root} {change}: all its pages are kept; if that is meant, {_ANEW}")

    def _single(self, name: str) -> Walk:
        status = os.stat(os.path.join(self._sieve.root, name), follow_symlinks=False)
        return Walk(files=[(name, status.st_size, status.st_mtime_ns)])

    def _digest(self, found: Walk) -> str:
        rules = f"{self._sieve.rules!r}{self._sieve.wishes!r}"
        lines = [rules, *(f"{path}\0{size}\0{mtime}" for path, size, mtime in found.files)]
        text = "\n".join(lines).encode("utf-8", "surrogateescape")
        return blake2b(text, digest_size=16).hexdigest()

    def _validators(self, size: int, mtime_ns: int) -> Validators:
        if self._verify == "hash":
            return Validators(size=size)  # never what is on record, so each file is read
        return Validators(size=size, mtime_ns=mtime_ns)
