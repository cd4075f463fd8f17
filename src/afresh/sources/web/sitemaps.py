"""Walks the sitemaps of a site: indexes to a depth of three, each file once, all of it bounded.

Whatever a cap cuts off makes the listing incomplete and says so in `errors`: absence proves nothing then.
`lastmod` is carried along as a hint and decides nothing. Feeds and llms.txt are read in the same way. A small
file with validators is asked for conditionally the next time, for what it lists is remembered (mark.py).
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from afresh.aio import in_turns
from afresh.errors import ExtractError
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, NotModified, Refused, Validators
from afresh.sources.web.lister_state import Remembered, has_room
from afresh.sources.web.sitemap_file import LARGEST_BYTES, SitemapFile, is_packed, parse_sitemap
from afresh.urls.canonical import canonical

DEEPEST = 3
MOST_MAPS = 1_000
MOST_URLS = 500_000
MOST_BYTES = 10 * LARGEST_BYTES  # of all files together, unpacked
MOST_ERRORS = 20  # after so many broken files the rest is not worth its time
SMALL_BYTES = 16 * 1024  # parsed on the spot where it is not packed; all else is parsed elsewhere

Parse = Callable[[bytes, int], Awaitable[SitemapFile]]


class Reader(Protocol):
    """Reads a file that serves the crawl, following every redirect."""

    async def read(
        self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None
    ) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class SitemapListing:
    """What the sitemaps of a site list together."""

    urls: Mapping[str, datetime | None] = field(default_factory=dict)  # canonical address to its lastmod
    dropped: Mapping[str, int] = field(default_factory=dict)  # why to how many
    errors: tuple[str, ...] = ()  # what could not be read or went beyond a cap: the listing is incomplete
    maps: int = 0  # files read
    files: Mapping[str, Remembered] = field(default_factory=dict)  # those that can be asked for conditionally


async def parse_in_thread(data: bytes, largest: int) -> SitemapFile:
    """Read a sitemap of at most `largest` bytes, unpacked, beside the event loop."""
    return await asyncio.to_thread(parse_sitemap, data, largest)


async def read_sitemaps(
    reader: Reader,
    urls: Iterable[str],
    *,
    parse: Parse = parse_in_thread,
    trim: Callable[[str], str] = lambda url: url,
    refusal: Callable[[str], str | None] = lambda url: None,
    optional: bool = False,
    most_urls: int = MOST_URLS,
    largest: int = LARGEST_BYTES,
    known: Mapping[str, Remembered] | None = None,
) -> SitemapListing:
    """Read sitemaps and those they point to; an `optional` one may be absent, forbidden or no sitemap.

    `parse` reads files elsewhere, all but tiny ones. No more than `most_urls` addresses are ever held; once
    there are more, the files that still wait are not fetched.
    """
    walk = _Walk(reader, parse, trim, refusal, most_urls, largest, known or {})
    for url in urls:
        walk.queue(url, depth=1)
    await walk.run(optional)
    return SitemapListing(walk.urls, dict(walk.dropped), tuple(walk.errors), walk.maps, walk.files)


class _Walk:
    """One walk over sitemap files, breadth first."""

    def __init__(
        self,
        reader: Reader,
        parse: Parse,
        trim: Callable[[str], str],
        refusal: Callable[[str], str | None],
        most_urls: int,
        largest: int,
        known: Mapping[str, Remembered],
    ) -> None:
        self._reader = reader
        self._parse = parse
        self._trim = trim
        self._refusal = refusal
        self._most_urls = most_urls
        self._largest = largest
        self._known = known
        self._waiting: deque[tuple[str, int]] = deque()
        self._seen: set[str] = set()
        self._bytes = 0
        self._unlisted = 0  # addresses beyond the most that are held
        self._unread = 0  # files beyond the most that are read
        self.urls: dict[str, datetime | None] = {}
        self.dropped: Counter[str] = Counter()
        self.errors: list[str] = []
        self.maps = 0
        self.files: dict[str, Remembered] = {}

    def queue(self, url: str, depth: int) -> None:
        """Read this map too, unless it was met before or a cap is reached."""
        if url in self._seen:
            return
        if depth > DEEPEST:
            self.errors.append(f"{url}: sitemap indexes nest deeper than {DEEPEST}")
        elif len(self._seen) >= MOST_MAPS:
            self._unread += 1
        else:
            self._seen.add(url)
            self._waiting.append((url, depth))

    async def run(self, optional: bool) -> None:
        """Read until nothing waits or enough is enough."""
        while self._waiting and not self._is_full():
            url, depth = self._waiting.popleft()
            await self._read(url, depth, optional and depth == 1)
        unread = self._unread + len(self._waiting)
        if self._unlisted:
            self.errors.append(
                f"sitemaps list more than {self._most_urls:,} addresses: {self._unlisted:,} left out"
            )
        if unread:
            files = "sitemap file was" if unread == 1 else "sitemap files were"
            self.errors.append(f"{unread:,} {files} not read: more than is sensible")

    def _is_full(self) -> bool:
        return self._unlisted > 0 or self._bytes > MOST_BYTES or len(self.errors) >= MOST_ERRORS

    async def _read(self, url: str, depth: int, optional: bool) -> None:
        known = self._known.get(url)
        validators = known.validators if known else None
        seen = await self._reader.read(url, limit=self._largest, validators=validators)
        if known is not None and isinstance(seen, NotModified):
            self.maps += 1
            self.files[url] = known
            await self._take(known.file, known.base, depth)
            return
        if not isinstance(seen, Body):
            problem = _problem(seen, optional)
            if problem:
                self.errors.append(f"{url}: {problem}")
            return
        file = await self._parsed(seen.data)
        self._bytes += max(file.size, len(seen.data))
        if file.kind == "none" and optional:
            return
        self.maps += 1
        if file.error:
            self.errors.append(f"{url}: {file.error}")
        if file.over:
            self.errors.append(f"{url}: too many entries in one sitemap, {file.over:,} or more left out")
        self._remember(url, Remembered(seen.validators, seen.url, file))
        await self._take(file, seen.url, depth)

    def _remember(self, url: str, read: Remembered) -> None:
        whole = read.file.error is None and not read.file.over
        if read.validators and whole and has_room(self.files, read):
            self.files[url] = read

    async def _parsed(self, data: bytes) -> SitemapFile:
        if len(data) <= SMALL_BYTES and not is_packed(data):
            return parse_sitemap(data, self._largest)
        try:
            return await self._parse(data, self._largest)
        except ExtractError as error:
            return SitemapFile("none", error=str(error))

    async def _take(self, file: SitemapFile, base: str, depth: int) -> None:
        async for entry in in_turns(file.entries, lambda entry: entry.loc):
            url = canonical(entry.loc, base)
            if url is None:
                self.dropped["not a web address"] += 1
            elif file.kind == "index":
                self.queue(url, depth + 1)
            else:
                self._keep(self._trim(url), entry.lastmod)

    def _keep(self, url: str, lastmod: datetime | None) -> None:
        if url in self.urls:
            return
        reason = self._refusal(url)
        if reason is not None:
            self.dropped[reason] += 1
        elif len(self.urls) >= self._most_urls:
            self._unlisted += 1
        else:
            self.urls[url] = lastmod


def _problem(seen: Gone | Refused | Failed | Moved | NotModified, optional: bool) -> str | None:
    """Why a map that gave no content leaves the listing incomplete, or None if it just is not there."""
    if isinstance(seen, Gone):
        return None
    if isinstance(seen, Refused):
        forbidden = seen.status_code is None or 400 <= seen.status_code < 500
        return None if optional and forbidden else seen.reason
    return seen.reason if isinstance(seen, Failed) else "no content"
