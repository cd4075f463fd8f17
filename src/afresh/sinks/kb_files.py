"""The two files that the knowledge base keeps for others: its cache and its index."""

from pathlib import Path

from afresh.core.index_text import index_text
from afresh.core.kb_cache import Cache, format_cache
from afresh.core.kb_cache_schema import parse_cache
from afresh.sinks.whole_file import read_whole, write_whole


class KbFiles:
    """Cache and index as they stand on disk; whoever writes holds the lock."""

    def __init__(self, *, index: Path, cache: Path) -> None:
        self.index = index
        self.cache = cache

    def read(self) -> Cache | None:
        """The cache; None where there is none yet, KbError where it cannot be used."""
        data = read_whole(self.cache)
        return None if data is None else parse_cache(data, str(self.cache))

    def write(self, cache: Cache) -> bool:
        """Bring both files in line with the cache; whether any of them had to be written.

        The cache comes first: an update that was killed in between finds it whole, and the index, which
        follows from it alone, is put right by the next call.
        """
        told = write_whole(self.cache, format_cache(cache).encode())
        shown = write_whole(self.index, index_text(cache.sources.values()).encode())
        return told or shown
