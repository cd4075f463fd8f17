"""A web site as a source: its root, and what its sitemaps list of it."""

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from afresh.core.model import Listed
from afresh.core.scope import Rules
from afresh.core.traps import ENDLESS
from afresh.core.urls import host_of, origin_of
from afresh.sources.sitemap import MOST_URLS, Parse, Reader, SitemapListing, parse_here, read_sitemaps

_AS_MEANT = "as the rules want it"
_LOCAL_ENDS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


class WebLister:
    """Lists the root of a site and the addresses in scope of its sitemaps."""

    kind = "web"
    mark: str | None = None
    unchanged = False

    def __init__(
        self,
        rules: Rules,
        reader: Reader,
        sitemaps: Callable[[str], Awaitable[Sequence[str]]],
        *,
        parse: Parse = parse_here,
        use_sitemaps: bool = True,
        expects_sitemap: bool = False,
    ) -> None:
        self._rules = rules
        self._reader = reader
        self._sitemaps = sitemaps
        self._parse = parse
        self._use_sitemaps = use_sitemaps
        self._expects_sitemap = expects_sitemap  # one was there before, so it may be gone but not forbidden
        self.listing_errors: list[str] = []  # what was not read of the sitemaps: the listing is incomplete
        self.notes: Sequence[str] = ()
        self.dropped: Mapping[
            str, int
        ] = {}  # addresses of sitemaps that nobody asked to leave out: why, how many

    async def list(self) -> AsyncIterator[Listed]:
        """The root once, then what the sitemaps add to it."""
        root = self._rules.root
        yield Listed(root, 0)
        if not self._use_sitemaps:
            return
        listing = await self._listing()
        self.listing_errors = [*listing.errors]
        self.dropped = {why: number for why, number in listing.dropped.items() if why != _AS_MEANT}
        for url in listing.urls:
            if url != root:
                yield Listed(url, 1)

    def walks(self, url: str) -> bool:
        """Every page of a site is asked by itself."""
        return True

    def refusal(self, url: str, depth: int) -> str | None:
        """Why an address is not part of the site as its rules bound it, or None."""
        return self._rules.refusal(url, depth)

    async def _listing(self) -> SitemapListing:
        """Read the sitemaps that robots.txt names, else the usual place, where one may be missing."""
        origin = origin_of(self._rules.root)
        named = await self._sitemaps(origin)
        return await read_sitemaps(
            self._reader,
            named or (f"{origin}/sitemap.xml",),
            parse=self._parse,
            trim=self._rules.trim,
            refusal=self._left_out,
            optional=not named and not self._expects_sitemap,
            most_urls=min(MOST_URLS, self._rules.max_pages),
        )

    def _left_out(self, url: str) -> str | None:
        """Why an address that a sitemap lists is left out, in few kinds, so that they can be counted."""
        reason = self._rules.refusal(url, 1)
        if reason is None:
            return None
        if reason.startswith(ENDLESS):
            return "look endless"
        host = host_of(url)
        if host == host_of(self._rules.root):
            return _AS_MEANT
        return "private" if is_private(host) else "other host"


def is_private(host: str) -> bool:
    """Whether a host is plainly one of a private network; names are not looked up."""
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_ENDS)
