"""A folder as a source: the files below it, told apart by size and time, or by what they hold."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b

from afresh.core.errors import SourceError
from afresh.core.file_urls import file_url, path_of
from afresh.core.looks import Validators
from afresh.core.model import Listed
from afresh.sources.sieve import HIDDEN, UNWANTED, Sieve
from afresh.sources.walk import Walk, walk

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
        return self._sieve.why_not(path)

    def _walked(self) -> Walk:
        """The walk, and what it means: the same mark means that every file is the same."""
        found = walk(self._sieve) if self._only is None else self._single(self._only)
        if not found.errors and self._verify == "stat":
            self.mark = self._digest(found)
            self.unchanged = self.mark == self._earlier
        return found

    def _single(self, name: str) -> Walk:
        status = os.stat(os.path.join(self._sieve.root, name))
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
