"""Reads one file that lists pages, inert whatever it holds: a sitemap (XML, text), RSS, Atom or llms.txt."""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from itertools import islice
from typing import Any, Literal

from lxml import etree

from afresh.sources.web.llms_txt import lines_in, links_in

LARGEST_BYTES = 50 * 1024 * 1024  # of one file, unpacked
MOST_ENTRIES = 50_000
MAX_PACKED_RATIO = 250  # how many times larger than packed a file above SMALL_UNPACKED_BYTES may be
SMALL_UNPACKED_BYTES = 1024 * 1024
MAX_GZIP_MEMBERS = 1_000  # each may be empty, so that the size alone does not bound the work
MAX_ELEMENTS = 1_000_000  # a file of LARGEST_BYTES with alternates in every language has 600,000
MAX_LINES = 1_000_000
MAX_LOC_CHARACTERS = 8_001  # one more than any URL may have: what is cut here is refused later
MAX_LISTED_CHARACTERS = 16 * 1024 * 1024  # of all URLs of a file

Kind = Literal["urlset", "index", "none"]
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_DATES = frozenset({"lastmod", "pubDate", "date", "updated", "published", "publication_date"})
_ROOTS: dict[str, Kind] = {
    "urlset": "urlset", "sitemapindex": "index", "rss": "urlset", "RDF": "urlset", "feed": "urlset",
}  # fmt: skip
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_LONGEST_DATE = 64
_UNPACKED_STEP = 1024 * 1024
_BLANK = b" \t\r\n\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Entry:
    """One address of a sitemap, as it is written there, and when it says it changed."""

    loc: str
    lastmod: datetime | None = None


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """What one file lists; `error` says why it is not all, or nothing."""

    kind: Kind
    entries: tuple[Entry, ...] = ()
    error: str | None = None
    over: int = 0  # entries beyond the cap, as far as they were counted
    size: int = 0  # bytes, unpacked


class _Bomb(Exception):
    """A packed file is larger than it may be; the message says in which way."""


def is_packed(data: bytes) -> bool:
    """Whether a file is compressed: its size then says nothing about the work it makes."""
    return data[:2] == b"\x1f\x8b"


def parse_sitemap(data: bytes, largest: int = LARGEST_BYTES, most: int = MOST_ENTRIES) -> SitemapFile:
    """Read a sitemap; never raises, never fetches, never expands an entity."""
    if is_packed(data):
        try:
            data = _gunzipped(data, largest)
        except (zlib.error, EOFError):
            return SitemapFile("none", error="broken gzip")
        except _Bomb as bomb:
            return SitemapFile("none", error=str(bomb), size=largest)
    if len(data) > largest:
        return SitemapFile("none", error=f"larger than {largest // 1024 // 1024} MB", size=largest)
    return replace(_parsed(data, most), size=len(data))


def _parsed(data: bytes, most: int) -> SitemapFile:
    data = data.lstrip(_BLANK)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()
        data = re.sub(rb"^(<\?xml[^>]*?)encoding=[\"'][^\"']*[\"']", rb"\1", data)
    return _from_xml(data, most) if data.startswith(b"<") else _from_text(data, most)


def _gunzipped(data: bytes, largest: int) -> bytes:
    """Undo gzip up to one byte more than `largest`; EOFError when the file breaks off."""
    out, packed, members = bytearray(), len(data), 0
    while is_packed(data) and len(out) <= largest:
        members += 1
        if members > MAX_GZIP_MEMBERS:
            raise _Bomb(f"packed in more than {MAX_GZIP_MEMBERS:,} parts")
        member = zlib.decompressobj(31)
        while data and not member.eof and len(out) <= largest:
            out += member.decompress(data, min(_UNPACKED_STEP, largest + 1 - len(out)))
            data = member.unconsumed_tail
            if len(out) > max(SMALL_UNPACKED_BYTES, MAX_PACKED_RATIO * packed):
                raise _Bomb("packed like a bomb")
        if not member.eof:
            if len(out) <= largest:
                raise EOFError
            break
        data = member.unused_data
    return bytes(out)


def _from_text(data: bytes, most: int) -> SitemapFile:
    text = data.decode("utf-8", "replace")
    room = _Room(most)
    links = islice(links_in(text, MAX_LINES), MAX_LINES)
    if not _fill(room, links):
        _fill(room, filter(_ADDRESS.fullmatch, (line.strip() for line in lines_in(text, MAX_LINES))))
    if not room.seen:
        return SitemapFile("none", error="not a sitemap")
    long = text.count("\n") > MAX_LINES
    return room.result("urlset", f"more than {MAX_LINES:,} lines; the rest was not read" if long else None)


def _fill(room: "_Room", locs: Iterable[str]) -> bool:
    """Take URLs as long as there is room to keep or count them; whether there were any."""
    all(room.take(loc, None) for loc in locs)
    return bool(room.seen)


class _Room:
    """The entries of a file up to the cap, each URL once, and how many are beyond it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = MAX_LISTED_CHARACTERS
        self.seen: dict[str, datetime | None] = {}
        self.over = 0

    def take(self, loc: str, lastmod: datetime | None) -> bool:
        """Keep an entry or count it; False once counting on is not worth it: twice as long as may be."""
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
        """What was kept."""
        entries = tuple(Entry(loc, lastmod) for loc, lastmod in self.seen.items())
        return SitemapFile("none" if error and not entries else kind, entries, error, self.over)


def _from_xml(data: bytes, most: int) -> SitemapFile:
    if b"<!ENTITY" in data:
        return SitemapFile("none", error="declares entities, which no sitemap needs")
    reading = _Reading(most)
    events = etree.iterparse(
        BytesIO(data),
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for event, element in events:
            if not reading.take(event, element):
                return SitemapFile("none", error="not a sitemap")
            if reading.is_full:
                return reading.result(None)
            if reading.elements > MAX_ELEMENTS:
                return reading.result(f"more than {MAX_ELEMENTS:,} elements; the rest was not read")
    except etree.XMLSyntaxError:
        reading.broken = True
    broken = reading.broken or len(events.error_log) > 0
    return reading.result("the XML is broken; what was readable is used" if broken else None)


class _Reading:
    """Collects entries while the file is parsed, and frees what has been read."""

    def __init__(self, most: int) -> None:
        self._kind: Kind = "none"
        self._room = _Room(most)
        self._locs: list[str] = []
        self._guid: str | None = None
        self._lastmod: datetime | None = None
        self._open = 0  # entries that have begun and not ended
        self.is_full = False
        self.elements = 0
        self.broken = False

    def take(self, event: str, element: Any) -> bool:
        """Take one parse event; False when the root shows that this is no sitemap."""
        name = _local(element)
        if event == "start":
            self.elements += 1
            if self._kind == "none":
                self._kind = _ROOTS.get(name, "none")
            self._open += name in _ENTRIES
            return self._kind != "none"
        parent = element.getparent()
        above = _local(parent) if parent is not None else ""
        if name in _ENTRIES:
            self._open -= 1
        if name in _ENTRIES and above != "loc":
            self._close(element)
        elif above in _ENTRIES:
            self._field(name, element)
        if parent is not None and (above in _ENTRIES or not self._open):
            _free(element, parent)
        return True

    def result(self, error: str | None) -> SitemapFile:
        """What was read."""
        return self._room.result(self._kind, error)

    def _field(self, name: str, element: Any) -> None:
        if name in ("loc", "link"):
            text = "".join(element.itertext(etree.Element)).strip() if len(element) else ""
            loc = text or (element.text or "").strip() or element.get("href", "").strip()
            alternate = element.get("rel", "alternate") == "alternate" and not element.get("hreflang")
            if loc and (name == "loc" or (alternate and not self._locs)):
                self._locs.append(loc)
        elif name == "guid":
            self._guid = (element.text or "").strip()
        elif name in _DATES and self._lastmod is None:
            self._lastmod = parse_lastmod(element.text or "")

    def _close(self, element: Any) -> None:
        """An entry is complete: keep its addresses."""
        spare = self._guid or (element.text or "").strip()
        if not self._locs and _ADDRESS.fullmatch(spare):
            self._locs.append(spare)
        for loc in self._locs:
            self.is_full = not self._room.take(loc, self._lastmod) or self.is_full
        self._locs, self._guid, self._lastmod = [], None, None


def _local(element: Any) -> str:
    """The name of an element without its namespace; comments and the like have none."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _free(element: Any, parent: Any) -> None:
    """Free the memory of an element that has been read, and of those before it."""
    element.clear()
    while element.getprevious() is not None:
        del parent[0]


def parse_lastmod(text: str) -> datetime | None:
    """A W3C or RFC 822 date as a moment in UTC; None when it is neither."""
    text = text.strip()
    if len(text) > _LONGEST_DATE:
        return None
    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01" * (2 - text.count("-"))
    for read in (_iso, parsedate_to_datetime):
        try:
            moment = read(text)
            return moment.astimezone(UTC) if moment.tzinfo else None
        except (ValueError, OverflowError):
            continue
    return None


def _iso(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
