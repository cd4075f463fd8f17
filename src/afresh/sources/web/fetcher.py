"""Fetch pages of web sites, as robots.txt allows: as Markdown if the site offers it, in a browser if needed."""

import asyncio
import re
from typing import TYPE_CHECKING

from afresh.dataclass import replace
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, NotModified, Request
from afresh.ports import Fetcher
from afresh.sources.web.hints import SiteHints, alternates_of, feeds_of
from afresh.sources.web.render_check import is_readable
from afresh.sources.web.robots import RobotsFiles

if TYPE_CHECKING:
    from afresh.sources.web.browser.rendering import PageRenderer

_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_AS_FILE = _MARKDOWN | {"text/plain", "application/octet-stream", ""}  # media types of .md files on servers
_HTML_START = re.compile(rb"[\xef\xbb\xbf \t\r\n]{0,247}(?:<!doctype|<html)", re.IGNORECASE)


class WebFetcher:
    """Implements `ports.Web` for one source; `hints` lists Markdown files, `renderer` opens pages in a browser."""

    def __init__(
        self,
        http: Fetcher,
        robots: RobotsFiles,
        *,
        renderer: "PageRenderer | None" = None,
        hints: SiteHints | None = None,
        markdown: bool = True,
    ) -> None:
        self._http = http
        self._renderer = renderer
        self._markdown = markdown  # whether Markdown is preferred to HTML
        self.hints = hints
        self.robots = robots
        self.refusal = robots.refusal
        self.crawl_delay = robots.crawl_delay
        self.state = robots.state

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a page; use its Markdown file if the site lists one or the last run used one."""
        url, hints = request.url, self.hints
        if hints is None or url == hints.root or not self._markdown:
            seen = await self._fetch_page(request)
            if hints is not None and url == hints.root and isinstance(seen, Body):
                hints.feeds = feeds_of(seen)
            return seen
        if request.media_type is None:
            alternate, prefers_markdown = hints.alternates.get(url), url in hints.modified
        else:
            alternate = request.at if request.at and request.at in alternates_of(url) else None
            prefers_markdown = request.media_type in _MARKDOWN
        if alternate is not None:
            if (file := await self._fetch_alternate(request, alternate)) is not None:
                return file
            request = replace(request, validators=None)  # the validators belong to the Markdown file
        return await self._fetch_page(replace(request, markdown=True) if prefers_markdown else request)

    async def _fetch_alternate(self, request: Request, alternate: str) -> Fetched | None:
        """Fetch the Markdown file of a page; return None if the page itself has to be fetched instead."""
        asked = request.validators if request.validators and request.validators.url == alternate else None
        seen = await self._fetch_page(replace(request, url=alternate, validators=asked))
        if isinstance(seen, NotModified | Failed):
            return seen
        if isinstance(seen, Body) and seen.media_type in _AS_FILE and not _HTML_START.match(seen.data):
            validators = replace(seen.validators, url=seen.validators.url or alternate)
            return replace(seen, media_type="text/markdown", validators=validators)
        return None

    async def _fetch_page(self, request: Request) -> Fetched:
        """Fetch a URL if robots.txt allows it, and render the page if a browser is needed."""
        refusal = await self.refusal(request.url)
        if refusal is not None:
            return refusal
        began = asyncio.get_running_loop().time()
        seen = await self._http.fetch(request)
        renderer = self._renderer
        if renderer is None or isinstance(seen, Gone | Moved):
            return seen
        if isinstance(seen, NotModified) or (isinstance(seen, Body) and not renderer.always and is_readable(seen)):
            url = seen.url if isinstance(seen, Body) else request.url
            renderer.open_sites.add("/".join(url.split("/", 3)[:3]))  # its origin
            return seen
        return await renderer.render_if_needed(request, seen, began)

    async def close(self) -> None:
        try:
            if self._renderer is not None:
                await self._renderer.close()
        finally:
            await self.robots.close()
            await self._http.close()
