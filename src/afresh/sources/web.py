"""A web site as a source: its root, and what its sitemaps list of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from afresh.core.model import Listed
from afresh.core.scope import Rules
from afresh.core.urls import origin_of
from afresh.sources.sitemap import Reader, SitemapListing, read_sitemaps


class WebLister:
    """Lists the root of a site and the addresses in scope of its sitemaps."""

    kind = "web"

    def __init__(
        self,
        rules: Rules,
        reader: Reader,
        sitemaps: Callable[[str], Awaitable[Sequence[str]]],
        *,
        use_sitemaps: bool = True,
        expects_sitemap: bool = False,
    ) -> None:
        self._rules = rules
        self._reader = reader
        self._sitemaps = sitemaps
        self._use_sitemaps = use_sitemaps
        self._expects_sitemap = expects_sitemap  # one was there before, so it may be gone but not forbidden
        self.listing_errors: list[str] = []  # sitemaps that could not be read: the listing is incomplete
        self.dropped: Mapping[str, int] = {}  # addresses of sitemaps left out: why to how many

    async def list(self) -> AsyncIterator[Listed]:
        """The root once, then what the sitemaps add to it."""
        root = self._rules.root
        yield Listed(root, 0)
        if not self._use_sitemaps:
            return
        listing = await self._listing()
        self.listing_errors = [*listing.errors]
        self.dropped = listing.dropped
        for url in dict.fromkeys(map(self._rules.trim, listing.urls)):
            if url != root:
                yield Listed(url, 1)

    def refusal(self, url: str, depth: int) -> str | None:
        """Why an address is not part of the site as its rules bound it, or None."""
        return self._rules.refusal(url, depth)

    async def _listing(self) -> SitemapListing:
        """Read the sitemaps that robots.txt names, else the usual place, where one may be missing."""
        origin = origin_of(self._rules.root)
        named = await self._sitemaps(origin)
        places = named or (f"{origin}/sitemap.xml",)
        optional = not named and not self._expects_sitemap
        return await read_sitemaps(self._reader, places, refusal=self._left_out, optional=optional)

    def _left_out(self, url: str) -> str | None:
        return self._rules.refusal(self._rules.trim(url), 1)
