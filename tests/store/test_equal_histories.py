"""The same history of a site gives the same index in every store."""

from dataclasses import replace
from random import Random

import pytest
from tests.store.asking import search
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.model.fetch import Failed, Gone, Moved, NotModified, Outcome, Seen
from afresh.model.filters import ALL_PAGES
from afresh.model.records import PageId, RunLimits, RunState, SourceId
from afresh.store.store import Store
from afresh.testing import FrozenClock

PATHS = ("", "a", "b", "c", "d", "e", "f")


def _next_site(dice: Random, site: dict[str, Seen]) -> dict[str, Seen]:
    """The site a while later: pages edited, moved, gone, broken, back again."""
    after = dict(site)
    for path in dice.sample(PATHS, dice.randint(0, 4)):
        links = dice.sample(PATHS, dice.randint(0, 4))
        page = read(f"Text {dice.randint(0, 3)} of {path}", *links, nofollow=links[:1] if dice.random() < 0.2 else ())
        others: list[Seen] = [
            read(f"Closed {path}", *links, follow=False),
            Gone(),
            Moved(to=at(dice.choice(PATHS))),
            Failed(outcome=Outcome.TIMEOUT, reason="no answer"),
        ]
        after[path] = page if path == "" or dice.random() < 0.6 else dice.choice(others)
    return after


def _answers(dice: Random, before: dict[str, Seen], site: dict[str, Seen]) -> dict[str, Seen]:
    """What a server says that knows which pages stayed the same."""
    lazy = dice.random() < 0.5
    return {path: NotModified() if lazy and before.get(path) == seen else seen for path, seen in site.items()}


async def _run(crawler: ManualCrawler, site: dict[str, Seen], batch: int, end: str) -> None:
    """One run, complete or not."""
    crawler.clock.advance(3600)
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    crawler.clock.advance(1)
    await crawler.look(site, batch=batch)
    if end == "complete":
        await crawler.sweep()
        return
    state = RunState.NEEDS_CONFIRMATION if end == "braked" else RunState.COMPLETED
    await crawler.finish(state)


async def _stored(crawler: ManualCrawler) -> dict[str, object]:
    """All that a reader can see, without numbers that stores give as they like."""
    pages = await crawler.store.pages.of_source(crawler.source.id, ALL_PAGES)
    links = await crawler.store.links.of_source(crawler.source.id)
    changes = await crawler.changes(run=crawler.run.id)
    run = await crawler.reload()
    return {
        "pages": [replace(page, id=PageId(0), source_id=SourceId(0)) for page in pages],
        "links": sorted((link.url, link.pages, link.text) for link in links),
        "changes": sorted((c.url, c.kind, c.old_hash or "", c.new_hash or "") for c in changes),
        "counts": {key: count for key, count in run.counts.items() if count},
        "queued": run.queued,
        "frontier": sorted((item.url, item.depth) for item in await crawler.store.queue.frontier(crawler.source.id)),
        "unreached": sorted(page.url for page in await crawler.store.pages.unreached(crawler.source.id, ROOT, 20)),
        "doomed": sorted((p.url, str(target)) for p, target in await crawler.store.pages.doomed(crawler.source.id)),
        "found": sorted(hit.url for hit in await search(crawler.store, "text", limit=100)),
        "history": {page.url: [a.outcome for a in await crawler.store.history.of_page(page.id)] for page in pages},
    }


@pytest.mark.parametrize("open_another", ["postgres"], indirect=True)
@pytest.mark.parametrize("seed", range(25))
async def test_postgres_and_sqlite_store_the_same_history(sqlite_store: Store, store: Store, seed: int) -> None:
    dice = Random(seed)
    crawlers = [await ManualCrawler.at(each, FrozenClock()) for each in (sqlite_store, store)]
    limits = RunLimits(max_pages=1000, max_depth=dice.choice([2, 3, 20]))
    before: dict[str, Seen] = {}
    site: dict[str, Seen] = {"": read("Text of the root", *PATHS[1:4])}
    for step in range(6):
        answers, batch = _answers(dice, before, site), dice.choice([1, 3, 1000])
        end = dice.choice(["complete", "complete", "partial", "braked"])
        for crawler in crawlers:
            crawler.limits, crawler.policy = limits, replace(crawler.policy, missing_after=2)
            await _run(crawler, answers, batch, end)
        sqlite, postgres = [await _stored(crawler) for crawler in crawlers]
        assert postgres == sqlite, f"step {step} ({end}, batches of {batch})"
        before, site = site, _next_site(dice, site)
