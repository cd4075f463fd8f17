"""Read the sitemaps of a site: each file once, indexes up to three levels deep, within limits.

A listing that exceeds a limit is incomplete, and `errors` says so: a page that is missing from it may still
exist. `lastmod` is only a hint. Feeds and llms.txt files are read in the same way. Small files with
validators are cached (`CachedSitemap`) and requested conditionally the next time.
"""

import asyncio
import re
import zlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from afresh.aio import yield_in_turns
from afresh.dataclass import dataclass, field, replace
from afresh.errors import ExtractError
from afresh.model.fetch import Body, Failed, Gone, Moved, NotModified, Refused, Validators
from afresh.sources.web.hints import lines_in, links_in
from afresh.urls.canonical import canonical

if TYPE_CHECKING:
    from afresh.sources.web.robots import RobotsReader

MAX_FILE_BYTES = 50 * 1024 * 1024  # maximum size of one file, unpacked
MAX_ENTRIES = 50_000
MAX_PACKED_RATIO = 250  # maximum ratio of unpacked to packed size, for files above SMALL_UNPACKED_BYTES
SMALL_UNPACKED_BYTES = 1024 * 1024
MAX_GZIP_MEMBERS = 1_000  # members may be empty, so a size limit alone does not limit the work
MAX_ELEMENTS = 1_000_000  # a file of MAX_FILE_BYTES with alternates in every language has 600,000
MAX_LINES = 1_000_000
MAX_LOC_CHARACTERS = 8_001  # one more than a URL may have: longer ones are cut here and refused later
MAX_LISTED_CHARACTERS = 16 * 1024 * 1024  # maximum length of all URLs of a file together

Kind = Literal["urlset", "index", "none"]
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_DATES = frozenset({"lastmod", "pubDate", "date", "updated", "published", "publication_date"})
_ROOTS: dict[str, Kind] = {
    "urlset": "urlset", "sitemapindex": "index", "rss": "urlset", "RDF": "urlset", "feed": "urlset",
}  # fmt: skip
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_MAX_DATE_CHARS = 64
_UNPACKED_STEP = 1024 * 1024
_BLANK = b" \t\r\n\xef\xbb\xbf"
MAX_CACHED_CHARS = 100_000  # size of all cached files together
_ENTRY = 50  # size that an entry counts in addition to its URL


class SitemapEntry(NamedTuple):
    """One URL as the sitemap writes it, with the date of its last change."""

    loc: str
    lastmod: datetime | None = None


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """The entries of one file; `error` says why they are incomplete or missing."""

    kind: Kind
    entries: tuple[SitemapEntry, ...] = ()
    error: str | None = None
    over: int = 0  # entries beyond the limit; counting stops at twice the limit
    size: int = 0  # in bytes, unpacked


class _Bomb(Exception):
    """Raised for a compressed file that exceeds a limit; the message names the limit."""


def is_packed(data: bytes) -> bool:
    """Return whether a file is compressed, so that its size does not limit the work of parsing it."""
    return data[:2] == b"\x1f\x8b"


def parse_sitemap(data: bytes, largest: int = MAX_FILE_BYTES, most: int = MAX_ENTRIES) -> SitemapFile:
    """Parse a sitemap; return errors instead of raising them, and never expand entities or fetch anything."""
    if is_packed(data):
        try:
            data = _gunzipped(data, largest)
        except (zlib.error, EOFError):
            return SitemapFile("none", error="broken gzip")
        except _Bomb as bomb:
            return SitemapFile("none", error=str(bomb), size=largest)
    if len(data) > largest:
        return SitemapFile("none", error=f"larger than {largest // 1024 // 1024} MB", size=largest)
    size, data = len(data), data.lstrip(_BLANK)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()
        data = re.sub(rb"^(<\?xml[^>]*?)encoding=[\"'][^\"']*[\"']", rb"\1", data)
    found = _from_xml(data, most) if data.startswith(b"<") else _from_text(data, most)
    return replace(found, size=size)


def _gunzipped(data: bytes, largest: int) -> bytes:
    """Unpack gzip data to at most `largest` + 1 bytes; raise EOFError if the data ends too early."""
    out, packed, members = bytearray(), len(data), 0
    while is_packed(data) and len(out) <= largest:
        members += 1
        if members > MAX_GZIP_MEMBERS:
            raise _Bomb(f"more than {MAX_GZIP_MEMBERS:,} gzip members")
        member = zlib.decompressobj(31)
        while data and not member.eof and len(out) <= largest:
            out += member.decompress(data, min(_UNPACKED_STEP, largest + 1 - len(out)))
            data = member.unconsumed_tail
            if len(out) > max(SMALL_UNPACKED_BYTES, MAX_PACKED_RATIO * packed):
                raise _Bomb("possible zip bomb")
        if not member.eof:
            if len(out) <= largest:
                raise EOFError
            break
        data = member.unused_data
    return bytes(out)


def _from_text(data: bytes, most: int) -> SitemapFile:
    text = data.decode("utf-8", "replace")
    collector = _EntryCollector(most)
    all(collector.take(loc, None) for loc in islice(links_in(text, MAX_LINES), MAX_LINES))
    if not collector.seen:
        lines = (line.strip() for line in lines_in(text, MAX_LINES))
        all(collector.take(loc, None) for loc in filter(_ADDRESS.fullmatch, lines))
    if not collector.seen:
        return SitemapFile("none", error="not a sitemap")
    long = text.count("\n") > MAX_LINES
    return collector.result("urlset", f"more than {MAX_LINES:,} lines; the rest was not read" if long else None)


class _EntryCollector:
    """Collects the entries of one file, each URL once; beyond a limit, entries are only counted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = MAX_LISTED_CHARACTERS
        self.seen: dict[str, datetime | None] = {}
        self.over = 0

    def take(self, loc: str, lastmod: datetime | None) -> bool:
        """Keep an entry, or only count it if the limit is reached; return False at twice the limit."""
        loc = loc[:MAX_LOC_CHARACTERS]
        if loc in self.seen:
            return True
        if len(self.seen) < self._most and self._left >= len(loc):
            self.seen[loc] = lastmod
            self._left -= len(loc)
            return True
        self.over += 1
        return self.over < self._most

    def result(self, kind: Kind, error: str | None) -> SitemapFile:
        entries = tuple(map(SitemapEntry._make, self.seen.items()))
        return SitemapFile("none" if error and not entries else kind, entries, error, self.over)


def _from_xml(data: bytes, most: int) -> SitemapFile:
    if b"<!ENTITY" in data:
        return SitemapFile("none", error="declares entities, which no sitemap needs")
    from lxml import etree

    events = etree.iterparse(
        BytesIO(data), events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False,
        dtd_validation=False, huge_tree=False, recover=True, remove_comments=True, remove_pis=True,
    )  # fmt: skip
    collector, entry = _EntryCollector(most), _OpenEntry()
    kind: Kind = "none"
    elements = nested = 0  # nested: the number of open entries
    broken = False
    try:
        for event, element in events:
            name = _local(element)
            if event == "start":
                elements += 1
                kind = _ROOTS.get(name, "none") if kind == "none" else kind
                if kind == "none":
                    return SitemapFile("none", error="not a sitemap")
                if elements > MAX_ELEMENTS:
                    return collector.result(kind, f"more than {MAX_ELEMENTS:,} elements; the rest was not read")
                nested += name in _ENTRIES
                continue
            parent = element.getparent()
            above = _local(parent) if parent is not None else ""
            nested -= name in _ENTRIES
            if name in _ENTRIES and above != "loc":
                if not entry.close(element, collector):
                    return collector.result(kind, None)
                entry = _OpenEntry()
            elif above in _ENTRIES:
                entry.read(name, element)
            if parent is not None and (above in _ENTRIES or not nested):
                _free(element, parent)
    except etree.XMLSyntaxError:
        broken = True
    broken = broken or len(events.error_log) > 0
    return collector.result(kind, "the XML is broken; what was readable is used" if broken else None)


def _whole_text(element: Any) -> str:
    from lxml import etree

    return "".join(element.itertext(etree.Element)).strip()


class _OpenEntry:
    """Collects the fields of an entry while its XML element is being read."""

    def __init__(self) -> None:
        self._locs: list[str] = []
        self._guid = ""
        self._lastmod: datetime | None = None

    def read(self, name: str, element: Any) -> None:
        if name in ("loc", "link"):
            text = _whole_text(element) if len(element) else ""
            loc = text or (element.text or "").strip() or element.get("href", "").strip()
            alternate = element.get("rel", "alternate") == "alternate" and not element.get("hreflang")
            if loc and (name == "loc" or (alternate and not self._locs)):
                self._locs.append(loc)
        elif name == "guid":
            self._guid = (element.text or "").strip()
        elif name in _DATES and self._lastmod is None:
            self._lastmod = parse_lastmod(element.text or "")

    def close(self, element: Any, collector: _EntryCollector) -> bool:
        """Pass the URLs of the entry to `collector`; return False if `collector` takes no more entries."""
        spare = self._guid or (element.text or "").strip()
        locs = self._locs or ([spare] if _ADDRESS.fullmatch(spare) else [])
        taken = [collector.take(loc, self._lastmod) for loc in locs]
        return all(taken)


def _local(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _free(element: Any, parent: Any) -> None:
    """Free the memory of an element that has been read, and of its preceding siblings."""
    element.clear()
    while element.getprevious() is not None:
        del parent[0]


def parse_lastmod(text: str) -> datetime | None:
    """Parse a W3C or RFC 822 date; return it in UTC, or None if it is neither."""
    text = text.strip()
    if len(text) > _MAX_DATE_CHARS:
        return None
    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01" * (2 - text.count("-"))
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    with suppress(ValueError, OverflowError):
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    return None


class CachedSitemap(NamedTuple):
    """A parsed sitemap, feed or llms.txt, which is used again when the site answers 304 Not Modified."""

    etag: str | None
    last_modified: str | None
    issuer: str | None  # the URL whose response had the validators
    base: str  # the URL of the file, after redirects
    kind: Kind
    entries: tuple[SitemapEntry, ...]


def has_room(files: Mapping[str, CachedSitemap], more: CachedSitemap) -> bool:
    kept = (entry for each in (*files.values(), more) for entry in each.entries)
    return sum(len(entry.loc) + _ENTRY for entry in kept) <= MAX_CACHED_CHARS


MAX_DEPTH = 3
MAX_FILES = 1_000
MAX_URLS = 500_000
MAX_TOTAL_BYTES = 10 * MAX_FILE_BYTES  # maximum size of all files together, unpacked
MAX_ERRORS = 20  # after this many broken files the rest is skipped
SMALL_BYTES = 16 * 1024  # larger and compressed files are parsed by `parse`, outside the event loop

Parse = Callable[[bytes, int], Awaitable[SitemapFile]]


@dataclass(slots=True)
class SitemapListing:
    urls: dict[str, datetime | None] = field(default_factory=dict)  # canonical URL to its lastmod
    dropped: Counter[str] = field(default_factory=Counter)  # reason to count
    errors: list[str] = field(default_factory=list)  # files that could not be read: the listing is incomplete
    maps: int = 0  # number of files that were read
    files: dict[str, CachedSitemap] = field(default_factory=dict)  # files that can be requested conditionally


async def parse_in_thread(data: bytes, largest: int) -> SitemapFile:
    return await asyncio.to_thread(parse_sitemap, data, largest)


async def read_sitemaps(
    reader: "RobotsReader",
    urls: Iterable[str],
    *,
    parse: Parse = parse_in_thread,
    trim: Callable[[str], str] = lambda url: url,
    refusal: Callable[[str], str | None] = lambda url: None,
    optional: bool = False,
    most_urls: int = MAX_URLS,
    largest: int = MAX_FILE_BYTES,
    known: Mapping[str, CachedSitemap] | None = None,
) -> SitemapListing:
    """Return the page URLs in these sitemaps and in the sitemaps that they point to.

    An `optional` sitemap may be missing, forbidden or another kind of file without an error. `parse` parses all
    but tiny files. At most `most_urls` URLs are kept; at that limit, no further files are fetched.
    """
    found = SitemapListing()
    walk = _Walk(found, reader, parse, trim, refusal, most_urls, largest, known or {})
    for url in urls:
        walk.queue(url, depth=1)
    await walk.run(optional)
    return found


@dataclass(slots=True)
class _Walk:
    _found: SitemapListing
    _reader: "RobotsReader"
    _parse: Parse
    _trim: Callable[[str], str]
    _refusal: Callable[[str], str | None]
    _most_urls: int
    _largest: int
    _known: Mapping[str, CachedSitemap]
    _waiting: deque[tuple[str, int]] = field(default_factory=deque)
    _seen: set[str] = field(default_factory=set)
    _bytes: int = 0
    _unlisted: int = 0  # number of URLs beyond the limit
    _unread: int = 0  # number of files beyond the limit

    def queue(self, url: str, depth: int) -> None:
        if url in self._seen:
            return
        if depth > MAX_DEPTH:
            self._found.errors.append(f"{url}: sitemap indexes nest deeper than {MAX_DEPTH}")
        elif len(self._seen) >= MAX_FILES:
            self._unread += 1
        else:
            self._seen.add(url)
            self._waiting.append((url, depth))

    async def run(self, optional: bool) -> None:
        errors = self._found.errors
        while self._waiting and not (self._unlisted or self._bytes > MAX_TOTAL_BYTES or len(errors) >= MAX_ERRORS):
            url, depth = self._waiting.popleft()
            await self._read(url, depth, optional and depth == 1)
        unread = self._unread + len(self._waiting)
        if self._unlisted:
            errors.append(f"sitemaps list more than {self._most_urls:,} URLs: {self._unlisted:,} left out")
        if unread:
            files = "sitemap file was" if unread == 1 else "sitemap files were"
            errors.append(f"{unread:,} {files} not read: a limit per site was reached")

    async def _read(self, url: str, depth: int, optional: bool) -> None:
        known = self._known.get(url)
        validators = Validators(etag=known.etag, last_modified=known.last_modified, url=known.issuer) if known else None
        seen = await self._reader.read(url, limit=self._largest, validators=validators)
        if known is not None and isinstance(seen, NotModified):
            self._found.maps += 1
            self._found.files[url] = known
            await self._take(known.kind, known.entries, known.base, depth)
            return
        if not isinstance(seen, Body):
            if problem := _problem(seen, optional):
                self._found.errors.append(f"{url}: {problem}")
            return
        file = await self._parsed(seen.data)
        self._bytes += max(file.size, len(seen.data))
        if file.kind == "none" and optional:
            return
        self._found.maps += 1
        if file.error:
            self._found.errors.append(f"{url}: {file.error}")
        if file.over:
            self._found.errors.append(f"{url}: too many entries in one sitemap, {file.over:,} or more left out")
        sent = seen.validators
        read = CachedSitemap(sent.etag, sent.last_modified, sent.url, seen.url, file.kind, file.entries)
        if sent and not file.error and not file.over and has_room(self._found.files, read):
            self._found.files[url] = read
        await self._take(file.kind, file.entries, seen.url, depth)

    async def _parsed(self, data: bytes) -> SitemapFile:
        if len(data) <= SMALL_BYTES and not is_packed(data):
            return parse_sitemap(data, self._largest)
        try:
            return await self._parse(data, self._largest)
        except ExtractError as error:
            return SitemapFile("none", error=str(error))

    async def _take(self, kind: Kind, entries: Sequence[SitemapEntry], base: str, depth: int) -> None:
        async for entry in yield_in_turns(entries, lambda entry: entry.loc):
            url = canonical(entry.loc, base)
            if url is None:
                self._found.dropped["not a web URL"] += 1
            elif kind == "index":
                self.queue(url, depth + 1)
            else:
                self._keep(self._trim(url), entry.lastmod)

    def _keep(self, url: str, lastmod: datetime | None) -> None:
        if url in self._found.urls:
            return
        reason = self._refusal(url)
        if reason is not None:
            self._found.dropped[reason] += 1
        elif len(self._found.urls) >= self._most_urls:
            self._unlisted += 1
        else:
            self._found.urls[url] = lastmod


def _problem(seen: Gone | Refused | Failed | Moved | NotModified, optional: bool) -> str | None:
    """Return why the listing is incomplete without this file; None if the site has no such file."""
    if isinstance(seen, Gone):
        return None
    if isinstance(seen, Refused):
        forbidden = seen.status_code is None or 400 <= seen.status_code < 500
        return None if optional and forbidden else seen.reason
    return seen.reason if isinstance(seen, Failed) else "no content"
