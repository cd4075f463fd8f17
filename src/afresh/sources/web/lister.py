"""A web site as a source: its root, and what its sitemaps, its llms.txt and its feeds list of it.

| file                 | is asked for                                                                    |
|----------------------|---------------------------------------------------------------------------------|
| sitemaps             | in every run: those that robots.txt names, else `/sitemap.xml`                  |
| llms.txt             | where robots.txt names it or it was there before; where there is no sitemap,    |
|                      | also in the first run and with `--full`                                         |
| feeds the root names | from the second run on, where nothing else says when pages changed              |

A root that is itself an llms.txt or llms-full.txt is the list that was asked for: no other is read beside it.
"""

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from afresh.model.fetch import Body
from afresh.model.records import Listed
from afresh.sources.web import feeds, llms_txt
from afresh.sources.web.hinted_fetcher import Hints
from afresh.sources.web.listed_urls import Found
from afresh.sources.web.lister_state import Mark, mark_from
from afresh.sources.web.markdown_alternates import BARE, FORMS, form_among, is_twin, page_of, tells_form
from afresh.sources.web.sitemap_file import LARGEST_BYTES
from afresh.sources.web.sitemaps import (
    MOST_URLS,
    Parse,
    Reader,
    SitemapListing,
    parse_in_thread,
    read_sitemaps,
)
from afresh.urls.canonical import host_of, origin_of
from afresh.urls.scope import WHOLE_SITE, Rules
from afresh.urls.traps import ENDLESS

_AS_MEANT = "as the rules want it"
_OTHER_HOST = "other host"
_LOCAL_ENDS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_GLANCE = 64 * 1024  # bytes of a page that is only asked whether it is there


class WebLister:
    """Lists the root of a site and the addresses in scope that the site itself lists."""

    kind = "web"
    unchanged = False

    def __init__(
        self,
        rules: Rules,
        reader: Reader,
        sitemaps: Callable[[str], Awaitable[Sequence[str]]],
        *,
        parse: Parse = parse_in_thread,
        use_sitemaps: bool = True,
        expects_sitemap: bool = False,
        mark: str | None = None,
        full: bool = False,
        engine: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._engine = engine  # of the browser that showed its pages
        self._rules = rules
        self._reader = reader
        self._sitemaps = sitemaps
        self._parse = parse
        self._lists = use_sitemaps and not rules.root.endswith((f"/{llms_txt.NAME}", WHOLE_SITE))
        self._expects_sitemap = expects_sitemap  # one was there before, so it may be gone but not forbidden
        before = mark_from(mark)
        self._before = replace(before, looked=False, form=None, files={}) if full else before
        self._found: Found | None = None
        self.hints = Hints(rules.root, form=self._before.form)
        self.listing_errors: list[str] = []  # what was not read of the files: the listing is incomplete
        self.notes: Sequence[str] = ()
        self.dropped: Mapping[str, int] = {}  # what nobody asked to leave out: why, how many

    @property
    def mark(self) -> str | None:
        """The hints that were there, for the next lister to ask for; None where nothing was listed."""
        found, before = self._found, self._before
        if found is None:
            return None
        told = before.named if self.hints.feeds is None else self.hints.feeds
        there = found.feeds if self.hints.feeds is None else [url for url in found.feeds if url in told]
        return Mark(
            looked=True,
            llms=tuple(found.llms),
            feeds=tuple(there),
            named=tuple(url for url in told if url not in found.tried),
            form=self.hints.form,
            dated=found.dated,
            files=found.files,
            engine=self._engine() or before.engine,
        ).text

    @property
    def tells_news(self) -> bool:
        """Whether the site gave dates when it was last listed: then its lists show what changed."""
        return self._before.dated

    def walks(self, url: str) -> bool:
        """Every page of a site is asked by itself."""
        return True

    async def list(self) -> AsyncIterator[Listed]:
        """The root once, then what the site lists beside it."""
        root = self._rules.root
        yield Listed(root, 0)
        found = Found()
        if self._lists:
            named = await self._sitemaps(origin_of(root))
            maps = await self._read_maps(found, [url for url in named if not llms_txt.is_llms(url)])
            await self._read_llms(found, maps, [url for url in named if llms_txt.is_llms(url)])
            await self._read_feeds(found)
        self._found = found
        self.listing_errors = found.errors
        self.dropped = {why: number for why, number in found.dropped.items() if why != _AS_MEANT}
        self.hints.modified.update(found.urls)
        for url, modified in found.urls.items():
            if url != root:
                yield Listed(url, 1, modified=modified)

    def refusal(self, url: str, depth: int) -> str | None:
        """Why an address is not part of the site as its rules bound it, or None."""
        return self._rules.refusal(url, depth)

    def trim(self, url: str) -> str:
        """The address by which the page is known that a link leads to."""
        return self.hints.page(self._rules.trim(url))

    async def _read_maps(self, found: Found, named: Sequence[str]) -> SitemapListing:
        """Read the sitemaps that robots.txt names, else the usual place, where one may be missing."""
        usual = f"{origin_of(self._rules.root)}/sitemap.xml"
        listing = await self._read(named or (usual,), optional=not named and not self._expects_sitemap)
        await found.take(listing)
        return listing

    async def _read_llms(self, found: Found, maps: SitemapListing, named: Sequence[str]) -> None:
        """Read the list of links that is meant for programs, if there is one."""
        known = named or self._before.llms
        for url in known:
            listing = await self._read_hint(found, url, llms_txt.LARGEST_BYTES, expected=True)
            if listing.maps or listing.errors:
                found.llms.append(url)
        if known or maps.maps or maps.errors or self._before.looked:
            return
        for url in llms_txt.places(self._rules.root):
            listing = await self._read_hint(found, url, llms_txt.LARGEST_BYTES, expected=False)
            if listing.maps:
                found.llms.append(url)
                return

    async def _read_feeds(self, found: Found) -> None:
        """Read the feeds that the root named, unless it is known already when pages changed."""
        before = self._before
        if found.dated:
            found.feeds.extend(before.feeds)
            found.tried.update(before.feeds)
            return
        for url in (*before.feeds, *before.named):
            found.tried.add(url)
            expected = url in before.feeds
            listing = await self._read_hint(found, url, feeds.LARGEST_BYTES, expected=expected)
            if listing.maps or (expected and listing.errors):
                found.feeds.append(url)

    async def _read_hint(self, found: Found, url: str, largest: int, *, expected: bool) -> SitemapListing:
        """Take what a file lists; nobody misses one that never was there."""
        listing = await self._read((url,), optional=not expected, largest=largest)
        if not listing.maps and not expected:
            return listing
        await self._learn_form(found, listing.urls)
        dropped = {why: number for why, number in listing.dropped.items() if why != _OTHER_HOST}
        await found.take(
            replace(listing, dropped=dropped), self._page
        )  # such files name other sites on purpose
        return listing

    async def _read(
        self, urls: Iterable[str], *, optional: bool, largest: int = LARGEST_BYTES
    ) -> SitemapListing:
        return await read_sitemaps(
            self._reader,
            urls,
            parse=self._parse,
            trim=self._rules.trim,
            refusal=self._left_out,
            optional=optional,
            most_urls=min(MOST_URLS, self._rules.max_pages),
            largest=largest,
            known=self._before.files,
        )

    def _page(self, url: str) -> str | None:
        """The page that a listed address stands for, if it belongs."""
        page = self.hints.page(url)
        return page if page == url or self._rules.refusal(page, 1) is None else None

    async def _learn_form(self, found: Found, urls: Iterable[str]) -> None:
        """How the site names its Markdown files: by what it lists, or by asking for the page of one."""
        files = [url for url in urls if is_twin(url)]
        if not files or self.hints.form is not None:
            return
        shown = (form_among(url, found.urls) for url in files)
        form = next((form for form in shown if form is not None), None)
        example = next((url for url in files if tells_form(url)), None)
        if form is None:
            form = FORMS[0] if example is None else await self._asked_form(example)
        self.hints.form = form

    async def _asked_form(self, file: str) -> str:
        pages = {page_of(file, form): form for form in FORMS}
        for url, form in pages.items():
            seen = await self._reader.read(url, limit=_GLANCE, cut=True)
            if isinstance(seen, Body):
                return pages.get(seen.url, form)
        return BARE

    def _left_out(self, url: str) -> str | None:
        """Why an address that the site lists is left out, in few kinds, so that they can be counted."""
        reason = self._rules.refusal(url, 1)
        if reason is None:
            return None
        if reason.startswith(ENDLESS):
            return "look endless"
        host = host_of(url)
        if host == host_of(self._rules.root):
            return _AS_MEANT
        return "private" if is_private(host) else _OTHER_HOST


def is_private(host: str) -> bool:
    """Whether a host is plainly one of a private network; names are not looked up."""
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_ENDS)
