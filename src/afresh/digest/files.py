"""The two files that the knowledge base keeps for others: its cache and its index."""

import hashlib
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from afresh.digest.cache import Cache, format_cache
from afresh.digest.cache_schema import parse_cache
from afresh.digest.index_txt import index_text
from afresh.digest.lock import one_writer
from afresh.files.whole_file import read_whole, write_whole
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock


class KbFiles:
    """Cache and index as they stand on disk; whoever writes holds the lock."""

    def __init__(self, *, index: Path, cache: Path, lock: Path | None = None) -> None:
        self.index = index
        self.cache = cache
        self._lock = lock or cache.with_name(cache.name + ".lock")
        self.digest: str | None = None  # of the cache as it was last read or written
        self._held: Cache | None = None  # what the file holds

    def one_writer(self, clock: Clock) -> AbstractAsyncContextManager[None]:
        """Nobody else writes meanwhile."""
        return one_writer(self._lock, clock)

    def read(self) -> Cache | None:
        """The cache; None where there is none yet, KbError where it cannot be used."""
        data = read_whole(self.cache)
        self.digest = None if data is None else _digest(data)
        self._held = None if data is None else parse_cache(data, str(self.cache))
        return self._held

    def write(self, cache: Cache) -> bool:
        """Bring both files in line with the cache; whether any of them had to be written.

        The cache comes first: an update that was killed in between finds it whole, and the index, which
        follows from it alone, is put right by the next call.
        """
        failpoint("kb.cache")
        told = cache is not self._held and self._tell(cache)
        failpoint("kb.index")
        shown = write_whole(self.index, index_text(cache.sources.values()).encode())
        failpoint("kb.written")
        return told or shown

    def _tell(self, cache: Cache) -> bool:
        data = format_cache(cache).encode()
        told = write_whole(self.cache, data)
        self.digest, self._held = _digest(data), cache
        return told


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
