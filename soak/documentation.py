"""PostgreSQL's documentation from the benchmark: crawled, changed, crawled again, and served."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import packages
from bench.corpus import Corpus, prepare
from bench.failure import BenchFailure
from bench.servers import serving
from tests.server.served import served
from tests.server.web.showroom import beside

from afresh.app import build
from afresh.config import Config, load
from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES

NAME = "postgresql"
KEYWORDS = {"replication": 1.0, "index": 0.6, "vacuum": 0.4}


@dataclass(frozen=True)
class DocumentationSite:
    """A running server, and the ids of what it shows."""

    url: str
    site: str  # where the documentation itself starts
    source: int
    runs: tuple[int, ...]
    pages: Mapping[str, int]  # by what became of them


@contextmanager
def documentation(store: str, work: Path) -> Iterator[DocumentationSite]:
    """Serve the documentation, crawl it into an empty store, and start a server on that store."""
    if not (packages.POSTGRES / "index.html").is_file():
        packages.install(print)
    if not (packages.POSTGRES / "index.html").is_file():
        raise BenchFailure("PostgreSQL's documentation is not installed (Debian package postgresql-doc-15)")
    corpus, config, over = prepare(packages.ORIGINS["pg"], work), _config(store, work), asyncio.Event()
    corpus.reset()
    with serving(work, packages.nginx()) as site:
        made: list[DocumentationSite] = []

        async def serve(up: threading.Event) -> None:
            read = await _read(config, corpus, site.base)
            async with served(work, config=config) as client:
                made.append(replace(read, url=client.server.url))
                up.set()
                await over.wait()

        with beside(serve, over):
            yield made[0]


def _config(store: str, work: Path) -> Config:
    flags = {
        "store.url": store,
        "network.allow": ["127.0.0.1/32"],
        "crawl.concurrency": 16,
        "sinks.mirror.kind": "folder",
        "sinks.mirror.path": str(work / "mirror"),
        "sinks.mirror.sources": [NAME],
    }
    return load(None, {}, flags, work)


async def _read(config: Config, corpus: Corpus, base: str) -> DocumentationSite:
    """Crawl the site, apply the typical mix of changes, and refresh it."""
    kb = await build(config)
    try:
        if await kb.sources.all():
            raise BenchFailure("the store is not empty: name a new one")
        start = corpus.start(base)
        runs = [await kb.runs.crawl(start, name=NAME, policy={"keywords": KEYWORDS})]
        await kb.sinks.sync([NAME])
        corpus.update()
        runs += await kb.runs.refresh([NAME])
        for run in runs:
            report = f"{run.new} new, {run.changed} changed, {run.deleted} deleted, {run.not_modified} untouched"
            print(f"run {run.run} {run.state}: {report}", flush=True)
            if run.state != "completed":
                raise BenchFailure(f"run {run.run} is {run.state}")
        [source] = await kb.sources.all()
        numbers = {name: await _number(kb, corpus.url(base, page)) for name, page in _chosen(corpus).items()}
        return DocumentationSite("", start, source.id, tuple(run.run for run in runs), numbers)
    finally:
        await kb.close()


def _chosen(corpus: Corpus) -> dict[str, str]:
    """Return one page of each kind of change, and the longest page."""
    mix = corpus.mix
    largest = max(mix.before, key=lambda page: (corpus.pristine / page).stat().st_size)
    fates = {"changed": mix.modified, "deleted": mix.deleted, "new": mix.added}
    return {**{name: min(pages) for name, pages in fates.items()}, "longest": largest}


async def _number(kb: KnowledgeBase, url: str) -> int:
    [page] = await kb.pages.records(None, ALL_PAGES, url=url, limit=1)
    return page.id
