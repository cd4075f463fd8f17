"""Reads one file that lists pages, inert whatever it holds: a sitemap (XML, text), RSS, Atom or llms.txt."""

import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import Any, Literal

from lxml import etree

from afresh.sources.llms import links_in

LARGEST_BYTES = 50 * 1024 * 1024
MOST_ENTRIES = 50_000

Kind = Literal["urlset", "index", "none"]
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_DATES = frozenset({"lastmod", "pubDate", "date", "updated", "published", "publication_date"})
_ROOTS: dict[str, Kind] = {
    "urlset": "urlset", "sitemapindex": "index", "rss": "urlset", "RDF": "urlset", "feed": "urlset",
}  # fmt: skip
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_LONGEST_DATE = 64
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


def parse_sitemap(data: bytes, *, largest: int = LARGEST_BYTES, most: int = MOST_ENTRIES) -> SitemapFile:
    """Read a sitemap; never raises, never fetches, never expands an entity."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = _gunzipped(data, largest)
        except (zlib.error, EOFError):
            return SitemapFile("none", error="broken gzip")
    if len(data) > largest:
        return SitemapFile("none", error=f"larger than {largest // 1024 // 1024} MB")
    data = data.lstrip(_BLANK)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()
        data = re.sub(rb"^(<\?xml[^>]*?)encoding=[\"'][^\"']*[\"']", rb"\1", data)
    return _from_xml(data, most) if data.startswith(b"<") else _from_text(data, most)


def _gunzipped(data: bytes, largest: int) -> bytes:
    """Undo gzip up to one byte more than `largest`; EOFError when the file breaks off."""
    out = bytearray()
    while data[:2] == b"\x1f\x8b" and len(out) <= largest:
        member = zlib.decompressobj(31)
        out += member.decompress(data, largest + 1 - len(out))
        if not member.eof:
            if len(out) <= largest:
                raise EOFError
            break
        data = member.unused_data
    return bytes(out)


def _from_text(data: bytes, most: int) -> SitemapFile:
    text = data.decode("utf-8", "replace")
    lines = (line.strip() for line in text.splitlines())
    locs = links_in(text, 2 * most) or [line for line in lines if _ADDRESS.fullmatch(line)]
    kind: Kind = "urlset" if locs else "none"
    error = None if locs else "not a sitemap"
    return SitemapFile(kind, tuple(map(Entry, locs[:most])), error, max(len(locs) - most, 0))


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
            if reading.over >= most:  # twice as long as any sitemap may be: not worth counting to its end
                return reading.result(None)
    except etree.XMLSyntaxError:
        reading.broken = True
    broken = reading.broken or len(events.error_log) > 0
    return reading.result("the XML is broken; what was readable is used" if broken else None)


class _Reading:
    """Collects entries while the file is parsed, and lets go of what has been read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kind: Kind = "none"
        self._seen: dict[str, datetime | None] = {}
        self._locs: list[str] = []
        self._guid: str | None = None
        self._lastmod: datetime | None = None
        self.over = 0
        self.broken = False

    def take(self, event: str, element: Any) -> bool:
        """Take one parse event; False when the root shows that this is no sitemap."""
        name = etree.QName(element).localname
        if event == "start":
            if self._kind == "none":
                self._kind = _ROOTS.get(name, "none")
            return self._kind != "none"
        parent = element.getparent()
        above = etree.QName(parent).localname if parent is not None else ""
        if name in _ENTRIES and above != "loc":
            self._close(element)
        elif above in _ENTRIES:
            self._field(name, element)
        return True

    def result(self, error: str | None) -> SitemapFile:
        """What was read."""
        entries = tuple(Entry(loc, lastmod) for loc, lastmod in self._seen.items())
        if error and not entries:
            return SitemapFile("none", error=error)
        return SitemapFile(self._kind, entries, error, self.over)

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
        """An entry is complete: keep its addresses, free its memory."""
        spare = self._guid or (element.text or "").strip()
        if not self._locs and _ADDRESS.fullmatch(spare):
            self._locs.append(spare)
        for loc in self._locs:
            if len(self._seen) < self._most:
                self._seen.setdefault(loc, self._lastmod)
            elif loc not in self._seen:
                self.over += 1
        self._locs, self._guid, self._lastmod = [], None, None
        element.clear()
        parent = element.getparent()
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
