"""A set of pages in a real store: served on loopback, crawled, ready to be asked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from afresh.app import build
from afresh.config import load
from afresh.kb import KnowledgeBase
from afresh.search.evaluation import DEPTH
from afresh.search.records import SearchMode
from afresh.testing import TinySite
from eval.sets import Page, QuestionSet

_ROBOTS = "User-agent: *\nSitemap: {url}sitemap.xml\n"
_ROOT = "<!doctype html><html lang=en><title>Contents</title><body><h1>Contents</h1></body></html>"


class NotIndexed(RuntimeError):
    """The crawl did not bring every page, so scores would say nothing."""


class NotAsked(RuntimeError):
    """A question was answered in another way than the mode says."""


class Asking:
    """Asks the knowledge base, and answers with the paths of pages."""

    def __init__(self, kb: KnowledgeBase, pages: Mapping[str, Page]) -> None:
        self._kb = kb
        self._pages = pages

    async def ranking(self, query: str, mode: str) -> list[str]:
        """The best pages for a query."""
        answer = await self._kb.search.search(query, mode=SearchMode(mode), limit=DEPTH + 1)  # contents are no answer
        if answer.notes:  # a half that was not asked would be scored as if it had been
            raise NotAsked(f"{mode}: {'; '.join(answer.notes)}")
        paths = [_path(hit.url) for hit in answer.hits]
        return [path for path in paths if path in self._pages][:DEPTH]

    async def is_weak(self, query: str) -> bool:
        """Whether the answer has no good match."""
        return (await self._kb.search.search(query, limit=DEPTH)).weak


@asynccontextmanager
async def indexed(asked: QuestionSet, folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[Asking]:
    """Crawl the pages of a set into a new store below the folder."""
    given = {
        "store.url": f"sqlite:///{folder / asked.name}.db",
        "network.allow": ["127.0.0.1/32"],
        "crawl.max_pages": len(asked.pages) + 1,
        **settings,
    }
    kb = await build(load(None, {}, given, folder))
    try:
        with TinySite() as site:
            _fill(site, asked.pages)
            report = await kb.runs.crawl(site.url, name=asked.name)
        wanted = len(asked.pages) + 1  # and the page of contents
        if report.state != "completed" or report.new != wanted:
            raise NotIndexed(f"{asked.name}: {report.new} of {wanted} pages, the run {report.state}")
        yield Asking(kb, asked.pages)
    finally:
        await kb.close()


def _fill(site: TinySite, pages: Mapping[str, Page]) -> None:
    for path, page in pages.items():
        site.put(_at(path), page.html)
    site.put("/", _ROOT)
    site.robots(_ROBOTS)
    site.sitemap(True)


def _at(path: str) -> str:
    return f"/docs/{path.removesuffix('.md')}.html"


def _path(url: str) -> str:
    name = urlsplit(url).path.removeprefix("/docs/").removesuffix(".html")
    return name if name.isdigit() else f"{name}.md"
