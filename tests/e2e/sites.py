"""Small sites for tests: pages that link to one another, and a site that counts what it is asked at once."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from afresh.testing import TinySite
from afresh.testing.script import Answer, SiteScript

if TYPE_CHECKING:
    from aiohttp import web

SERVICE = ("/robots.txt", "/sitemap.xml", "/llms.txt")


def page(title: str, links: Sequence[str] = (), text: str = "", *, head: str = "") -> str:
    """A page with a heading, a paragraph and a list of links, all in its main part."""
    items = "".join(f'<li><a href="{escape(link)}">to {escape(link)}</a></li>' for link in links)
    return (
        f"<!doctype html><html lang=en><head><title>{escape(title)}</title>{head}</head><body>"
        f"<main><h1>{escape(title)}</h1><p>{escape(text or sentence(title))}</p><ul>{items}</ul></main>"
        "</body></html>"
    )


def sentence(title: str) -> str:
    """A sentence that only this page has."""
    return f"This page speaks of {word(title)} and of little else."


def word(path: str) -> str:
    """The one word that finds a page."""
    return "w" + "".join(each if each.isalnum() else "x" for each in path)


def lay(site: SiteScript, graph: Mapping[str, Sequence[str]]) -> None:
    """Place pages that link as the graph says; each can be found by `word(path)`."""
    for path, links in graph.items():
        site.put(path, page(path, links))


def star(number: int) -> dict[str, list[str]]:
    """A root that links to every page, each of which links back."""
    paths = [f"/p{index}" for index in range(number)]
    return {"/": paths, **{path: ["/"] for path in paths}}


def looks(site: TinySite) -> Counter[str]:
    """How often each page was asked for, without the files that serve the crawl."""
    return Counter(path for path in site.requests.paths() if not path.endswith(SERVICE))


class BusySite(TinySite):
    """A site that notes how many requests it had at once, and those it was asked for while they waited."""

    def __init__(self, *, port: int = 0, etags: bool = True, aside: tuple[str, ...] = ()) -> None:
        super().__init__(port=port, etags=etags)
        self.aside = aside  # ends of the paths that are not counted
        self.most = 0
        self._now: list[str] = []
        self.fullest: list[str] = []  # what was being answered when it was fullest
        self.last_at = 0.0

    async def _respond(self, request: "web.BaseRequest") -> "web.StreamResponse":
        if request.path.endswith(self.aside):
            return await super()._respond(request)
        self._now.append(request.path_qs)
        self.last_at = time.monotonic()
        if len(self._now) > self.most:
            self.most, self.fullest = len(self._now), [*self._now]
        try:
            return await super()._respond(request)
        finally:
            self._now.remove(request.path_qs)


class StubbornSite(TinySite):
    """A site that takes no notice of validators."""

    def _answer(self, request: "web.BaseRequest") -> Answer:
        return self.find(request.path_qs, self.url)
