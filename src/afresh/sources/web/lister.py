"""List the pages of a web site: its root, and those in its sitemaps, llms.txt files and feeds.

| kind of file         | when it is requested                                                            |
|----------------------|---------------------------------------------------------------------------------|
| sitemaps             | in every run: those that robots.txt names, else `/sitemap.xml`                  |
| llms.txt             | if robots.txt names it or the last run found it; for a site without sitemap,    |
|                      | also in the first run and with `--full`                                         |
| feeds                | those that the root page names, from the second run on, if no other file has    |
|                      | the dates at which pages changed                                                |

If the root is itself an llms.txt or llms-full.txt, no other list is read.
"""

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from afresh.aio import yield_in_turns
from afresh.dataclass import asdict, dataclass, field, replace
from afresh.extract.pool.wire import LazyFunction
from afresh.model.fetch import Body, Failed, Refused
from afresh.model.records import ListedUrl
from afresh.sources.registry import OpenedSource, Refusal, SourceContext, SourceKind
from afresh.sources.web import hints, sitemaps
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.http import HttpFetcher, http_options
from afresh.sources.web.robots import RobotsFiles, RobotsReader
from afresh.urls.canonical import host_of, origin_of
from afresh.urls.scope import ENDLESS, OTHER_SITE, WHOLE_SITE, Rules

if TYPE_CHECKING:
    from afresh.sources.web.browser.browser import Browsers
    from afresh.sources.web.browser.rendering import PageRenderer

_MAX_MARK_CHARS = 1_000_000
_BY_THE_RULES = "by the rules"
_OTHER_HOST = "other host"
_ELSEWHERE = "crawl that URL instead or widen the scope"
_LOCAL_ENDS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_EXISTENCE_BYTES = 64 * 1024  # bytes that are read to check whether a page exists


@dataclass(frozen=True, slots=True, kw_only=True)
class ListerState:
    """What a listing found besides pages, stored for the next run."""

    looked: bool = False  # llms.txt was looked for, although robots.txt does not name it
    llms: tuple[str, ...] = ()  # URLs of existing llms.txt files
    feeds: tuple[str, ...] = ()  # URLs of existing feeds
    named: tuple[str, ...] = ()  # feeds that the root page names and that were not requested yet
    form: str | None = None  # how Markdown files are named (sources/web/hints.py); None: unknown
    dated: bool = False  # at least one listed page had the date of its last change
    files: dict[str, sitemaps.CachedSitemap] = field(default_factory=dict)
    engine: str | None = None  # the browser engine that renders pages of the site; None: no browser was needed

    @property
    def text(self) -> str:
        import msgspec

        return msgspec.json.encode(self).decode()


def mark_from(text: str | None) -> ListerState:
    import msgspec

    if text and len(text) <= _MAX_MARK_CHARS:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text, type=ListerState)
    return ListerState()


@dataclass(slots=True)
class ListedPages(sitemaps.SitemapListing):
    """The pages in all listed files, each with its newest date of change, and the files that were read."""

    llms: list[str] = field(default_factory=list)  # existing llms.txt files
    feeds: list[str] = field(default_factory=list)  # existing feeds
    tried: set[str] = field(default_factory=set)  # requested feeds

    @property
    def dated(self) -> bool:
        return any(self.urls.values())

    async def take(self, listing: sitemaps.SitemapListing, page: Callable[[str], str | None] = str) -> None:
        """Add the entries of a listing; `page` returns the page URL for an entry, or None if it is out of scope."""
        async for url, modified in yield_in_turns(listing.urls.items(), lambda listed: listed[0]):
            known = page(url)
            if known is not None:
                before = self.urls.get(known)
                newer = modified is not None and (before is None or modified > before)
                self.urls[known] = modified if newer else before
        self.dropped.update(listing.dropped)
        self.errors += listing.errors
        self.files |= listing.files


class WebLister:
    kind = "web"
    unchanged = False

    def __init__(
        self,
        rules: Rules,
        reader: RobotsReader,
        sitemap_urls: Callable[[str], Awaitable[Sequence[str]]],
        *,
        parse: sitemaps.Parse = sitemaps.parse_in_thread,
        use_sitemaps: bool = True,
        expects_sitemap: bool = False,
        mark: str | None = None,
        full: bool = False,
        engine: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._engine = engine  # returns the browser engine that rendered pages of the site
        self._rules = rules
        self._trims = rules.max_params is not None or rules.aside is not None
        self.refusal = rules.refusal
        self._reader = reader
        self._sitemap_urls = sitemap_urls
        self._parse = parse
        self._lists = use_sitemaps and not rules.root.endswith((f"/{hints.LLMS_TXT}", WHOLE_SITE))
        self._expects_sitemap = expects_sitemap  # there was a sitemap before, so a refusal is an error
        before = mark_from(mark)
        self._before = replace(before, looked=False, form=None, files={}) if full else before
        self.has_change_dates = before.dated
        self._found: ListedPages | None = None
        self.hints = hints.SiteHints(rules.root, form=self._before.form)
        self.listing_errors: list[str] = []  # errors in reading the files; if any, the listing is incomplete
        self.notes: Sequence[str] = ()
        self.dropped: Mapping[str, int] = {}  # reason → number of URLs that were left out, except by the rules

    @property
    def mark(self) -> str | None:
        found, before = self._found, self._before
        if found is None:
            return None
        named = before.named if self.hints.feeds is None else self.hints.feeds
        there = found.feeds if self.hints.feeds is None else [url for url in found.feeds if url in named]
        return ListerState(
            looked=True,
            llms=tuple(found.llms),
            feeds=tuple(there),
            named=tuple(url for url in named if url not in found.tried),
            form=self.hints.form,
            dated=found.dated,
            files=found.files,
            engine=self._engine() or before.engine,
        ).text

    def walks(self, url: str) -> bool:
        return True

    async def list(self) -> AsyncIterator[ListedUrl]:
        root = self._rules.root
        yield ListedUrl(root, 0)
        found = ListedPages()
        if self._lists:
            named = await self._sitemap_urls(origin_of(root))
            given = [url for url in named if not hints.is_llms(url)]
            expected = bool(given) or self._expects_sitemap
            maps = await self._read(given or (f"{origin_of(root)}/sitemap.xml",), optional=not expected)
            await found.take(maps)
            await self._read_llms(found, maps, [url for url in named if hints.is_llms(url)])
            await self._read_feeds(found)
        self._found = found
        self.listing_errors = found.errors
        del found.dropped[_BY_THE_RULES]
        self.dropped = found.dropped
        self.hints.modified.update(found.urls)
        for url, modified in found.urls.items():
            if url != root:
                yield ListedUrl(url, 1, modified=modified)

    def trim(self, url: str) -> str:
        """Return the page URL that a link leads to; for a link to a Markdown file, that of its page."""
        if self._trims:
            url = self._rules.trim(url)
        return url if self.hints.form is None else self.hints.page(url)

    async def _read_llms(self, found: ListedPages, maps: sitemaps.SitemapListing, named: Sequence[str]) -> None:
        known = named or self._before.llms
        for url in known:
            listing = await self._read_hint(found, url, hints.MAX_LLMS_TXT_BYTES, expected=True)
            if listing.maps or listing.errors:
                found.llms.append(url)
        if known or maps.maps or maps.errors or self._before.looked:
            return
        for url in hints.llms_txt_places(self._rules.root):
            listing = await self._read_hint(found, url, hints.MAX_LLMS_TXT_BYTES, expected=False)
            if listing.maps:
                found.llms.append(url)
                return

    async def _read_feeds(self, found: ListedPages) -> None:
        """Read the feeds that the root page names, unless the sitemaps say when pages changed."""
        before = self._before
        if found.dated:
            found.feeds.extend(before.feeds)
            found.tried.update(before.feeds)
            return
        for url in (*before.feeds, *before.named):
            found.tried.add(url)
            expected = url in before.feeds
            listing = await self._read_hint(found, url, hints.MAX_FEED_BYTES, expected=expected)
            if listing.maps or (expected and listing.errors):
                found.feeds.append(url)

    async def _read_hint(
        self, found: ListedPages, url: str, largest: int, *, expected: bool
    ) -> sitemaps.SitemapListing:
        """Read a file and add its entries to `found`; a missing file is an error only if it is expected."""
        listing = await self._read((url,), optional=not expected, largest=largest)
        if not listing.maps and not expected:
            return listing
        await self._learn_form(found, listing.urls)

        def page_if_ours(url: str) -> str | None:
            page = self.hints.page(url)
            return page if page == url or self._rules.refusal(page, 1) is None else None

        # such files often link to other sites, so these links are not reported
        del listing.dropped[_OTHER_HOST]
        await found.take(listing, page_if_ours)
        return listing

    async def _read(
        self, urls: Iterable[str], *, optional: bool, largest: int = sitemaps.MAX_FILE_BYTES
    ) -> sitemaps.SitemapListing:
        return await sitemaps.read_sitemaps(
            self._reader,
            urls,
            parse=self._parse,
            trim=self._rules.trim,
            refusal=self._left_out,
            optional=optional,
            most_urls=min(sitemaps.MAX_URLS, self._rules.max_pages),
            largest=largest,
            known=self._before.files,
        )

    async def _learn_form(self, found: ListedPages, urls: Iterable[str]) -> None:
        """Find out how the site names its Markdown files: from the listed pages, or by requesting one."""
        files = [url for url in urls if hints.is_alternate(url)]
        if not files or self.hints.form is not None:
            return
        forms = (hints.form_among(url, found.urls) for url in files)
        form = next((form for form in forms if form is not None), None)
        example = next((url for url in files if hints.shows_form(url)), None)
        if form is None:
            form = hints.FORMS[0] if example is None else await self._ask_form(example)
        self.hints.form = form

    async def _ask_form(self, file: str) -> str:
        pages = {hints.page_of(file, form): form for form in hints.FORMS}
        for url, form in pages.items():
            seen = await self._reader.read(url, limit=_EXISTENCE_BYTES, cut=True)
            if isinstance(seen, Body):
                return pages.get(seen.url, form)
        return hints.BARE

    def _left_out(self, url: str) -> str | None:
        """Return why a listed URL is out of scope, in one of a few fixed texts; None if it is in scope."""
        reason = self._rules.refusal(url, 1)
        if reason is None:
            return None
        if reason.startswith(ENDLESS):
            return "infinite URL space"
        host = host_of(url)
        if host == host_of(self._rules.root):
            return _BY_THE_RULES
        try:
            private = not ipaddress.ip_address(host.strip("[]")).is_global
        except ValueError:  # a host name; names are not resolved here
            private = "." not in host or host.endswith(_LOCAL_ENDS)
        return "private" if private else _OTHER_HOST


def open_site(context: SourceContext) -> OpenedSource:
    """Open a web site as a source; redirects may only lead to URLs in scope."""
    rules = context.rules

    def outside(url: str, asked: str) -> str | None:
        if rules.allows_redirect(asked, url):
            return None
        return OTHER_SITE if asked == rules.root else f"{rules.refusal(url, 0)}; {_ELSEWHERE}"

    client = open_client(context, outside)
    lister = WebLister(
        rules,
        client.robots,
        client.robots.sitemaps,
        parse=partial(
            context.parsers.call, LazyFunction(sitemaps.SitemapFile.__module__, "parse_sitemap", sitemaps.SitemapFile)
        ),
        use_sitemaps=context.config.crawl.sitemaps,
        expects_sitemap=context.listed,
        mark=context.last_mark,
        full=context.full,
        engine=context.engine,
    )
    context.trim, context.modified = lister.trim, lister.hints.modified.get
    context.has_change_dates = lister.has_change_dates
    client.hints = lister.hints
    return client, lister


def open_client(
    context: SourceContext, outside: Callable[[str, str], str | None] = lambda url, asked: None, *, paced: bool = True
) -> WebFetcher:
    """Return an HTTP client that respects robots.txt; `outside` returns why a redirect to a URL is refused."""

    async def refusal(url: str, asked: str) -> Refused | Failed | None:
        why = outside(url, asked)
        return await robots.refusal(url) if why is None else Refused(reason=why)

    options, crawl = http_options(context.config, context.policy), context.config.crawl
    options = options if paced else replace(options, delay_seconds=0.0)
    http = HttpFetcher(options, clock=context.clock, refusal=refusal)
    learn = http.pace.learn if paced else None
    renderer = None if crawl.render == "never" else _renderer(context, refusal)
    robots = RobotsFiles(http, respect=crawl.respect_robots, clock=context.clock, learn=learn)
    return WebFetcher(http, robots, renderer=renderer, markdown=crawl.markdown == "auto")


def _renderer(context: SourceContext, refusal: Refusal) -> "PageRenderer":
    """Return the renderer of pages, which starts a browser only when a page needs one."""
    from afresh.sources.web.browser.launch import BrowserOptions, must_be_installed, why_unsandboxed
    from afresh.sources.web.browser.rendering import PageRenderer, RenderEngines

    config, always = context.config, context.config.crawl.render == "always"
    if always:
        must_be_installed()

    def start() -> "Browsers":
        from afresh.sources.web.browser.browser import Browsers

        return Browsers(BrowserOptions(**asdict(config.browser), network=config.network, policy=context.policy))

    engines = RenderEngines(
        start,
        config.browser.engines,
        root=context.root,
        known=None if context.full else mark_from(context.last_mark).engine,
        unsandboxed=why_unsandboxed(config.browser.sandbox),
    )
    seconds = config.network.timeout_seconds
    renderer = PageRenderer(engines, always=always, total_seconds=seconds, clock=context.clock, refusal=refusal)
    context.notes, context.engine = (lambda: renderer.notes), (lambda: engines.remembered)
    return renderer


KIND = SourceKind(open=open_site, is_remote_safe=True)
