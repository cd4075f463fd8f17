"""Walks the sitemaps of a site: indexes to a depth of three, each file once, all of it bounded."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from afresh.core.looks import Body, Failed, Fetched, Gone, Moved, NotModified, Refused
from afresh.core.urls import canonical
from afresh.sources.sitemap_file import LARGEST_BYTES, SitemapFile, parse_sitemap

DEEPEST = 3
MOST_MAPS = 1_000
MOST_URLS = 500_000
_LARGE = 256 * 1024  # parsed off the event loop


class Reader(Protocol):
    """Reads a file that serves the crawl, following every redirect."""

    async def read(self, url: str, *, limit: int, cut: bool = False) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class SitemapListing:
    """What the sitemaps of a site list together."""

    urls: Mapping[str, datetime | None] = field(default_factory=dict)  # canonical address to its lastmod
    dropped: Mapping[str, int] = field(default_factory=dict)  # why to how many
    errors: tuple[str, ...] = ()  # maps that could not be read: the listing is incomplete
    maps: int = 0  # files read


async def read_sitemaps(
    reader: Reader,
    urls: Iterable[str],
    *,
    refusal: Callable[[str], str | None] = lambda url: None,
    optional: bool = False,
    most_urls: int = MOST_URLS,
) -> SitemapListing:
    """Read sitemaps and those they point to; an `optional` one may be absent, forbidden or no sitemap."""
    walk = _Walk(reader, refusal, most_urls)
    for url in urls:
        walk.queue(url, depth=1)
    await walk.run(optional)
    return SitemapListing(walk.urls, dict(walk.dropped), tuple(walk.errors), walk.maps)


class _Walk:
    """One walk over sitemap files, breadth first."""

    def __init__(self, reader: Reader, refusal: Callable[[str], str | None], most_urls: int) -> None:
        self._reader = reader
        self._refusal = refusal
        self._most_urls = most_urls
        self._waiting: deque[tuple[str, int]] = deque()
        self._seen: set[str] = set()
        self.urls: dict[str, datetime | None] = {}
        self.dropped: Counter[str] = Counter()
        self.errors: list[str] = []
        self.maps = 0

    def queue(self, url: str, depth: int) -> None:
        """Read this map too, unless it was met before or a cap is reached."""
        if url in self._seen:
            return
        if depth > DEEPEST:
            self.errors.append(f"{url}: sitemap indexes nest deeper than {DEEPEST}")
        elif len(self._seen) >= MOST_MAPS:
            self.dropped[f"more than {MOST_MAPS} sitemap files"] += 1
        else:
            self._seen.add(url)
            self._waiting.append((url, depth))

    async def run(self, optional: bool) -> None:
        """Read until nothing waits."""
        while self._waiting:
            url, depth = self._waiting.popleft()
            await self._read(url, depth, optional and depth == 1)

    async def _read(self, url: str, depth: int, optional: bool) -> None:
        seen = await self._reader.read(url, limit=LARGEST_BYTES)
        if not isinstance(seen, Body):
            problem = _problem(seen, optional)
            if problem:
                self.errors.append(f"{url}: {problem}")
            return
        file = await _parsed(seen.data)
        if file.kind == "none" and optional:
            return
        self.maps += 1
        if file.error:
            self.errors.append(f"{url}: {file.error}")
        if file.over:
            self.dropped["beyond the largest number of entries in one sitemap"] += file.over
        self._take(file, seen.url, depth)

    def _take(self, file: SitemapFile, base: str, depth: int) -> None:
        for entry in file.entries:
            url = canonical(entry.loc, base)
            if url is None:
                self.dropped["not an http address"] += 1
            elif file.kind == "index":
                self.queue(url, depth + 1)
            elif url not in self.urls:
                self._keep(url, entry.lastmod)

    def _keep(self, url: str, lastmod: datetime | None) -> None:
        reason = self._refusal(url)
        if reason is None and len(self.urls) >= self._most_urls:
            reason = f"more than {self._most_urls} addresses"
        if reason is None:
            self.urls[url] = lastmod
        else:
            self.dropped[reason] += 1


async def _parsed(data: bytes) -> SitemapFile:
    return await asyncio.to_thread(parse_sitemap, data) if len(data) > _LARGE else parse_sitemap(data)


def _problem(seen: Gone | Refused | Failed | Moved | NotModified, optional: bool) -> str | None:
    """Why a map that gave no content leaves the listing incomplete, or None if it just is not there."""
    if isinstance(seen, Gone):
        return None
    if isinstance(seen, Refused):
        forbidden = seen.status_code is None or 400 <= seen.status_code < 500
        return None if optional and forbidden else seen.reason
    return seen.reason if isinstance(seen, Failed) else "no content"
