"""Several processes on one store: no row twice, no commit lost, nothing remembered that is no longer so."""

import asyncio
from collections import Counter
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from tests.forking import forking
from tests.store.asking import search
from tests.store.conftest import Open
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.errors import RunBusy
from afresh.model.fetch import Seen
from afresh.model.records import Run, RunMode, RunState
from afresh.store.open import open_store
from afresh.testing import FrozenClock


def _host(number: int) -> str:
    return f"https://h{number}.example.org/"


async def _side_by_side(open_another: Open, clock: FrozenClock, workers: int) -> list[ManualCrawler]:
    """So many workers on one run, each as in a process of its own."""
    first = await ManualCrawler.at(await open_another(), clock)
    await first.begin()
    return [first, *[first.beside(await open_another(), f"w{n}") for n in range(2, workers + 1)]]


async def test_F23_interleaved_claims_never_give_the_same_row(open_another: Open, clock: FrozenClock) -> None:
    crawlers = await _side_by_side(open_another, clock, 2)
    await crawlers[0].enqueue(*(_host(n) + str(page) for n in range(20) for page in range(3)))
    taken = []
    for turn in range(40):
        crawler = crawlers[turn % 2]
        taken += [(claim.crawl_id, claim.domain, crawler.worker) for claim in await crawler.claim(3)]
    assert not [crawl for crawl, count in Counter(crawl for crawl, _, _ in taken).items() if count > 1]
    owners = {(domain, worker) for _, domain, worker in taken}
    assert len(owners) == len({domain for domain, _ in owners}), "a host has one worker"


async def test_F23_claims_at_the_same_time_never_give_the_same_row(open_another: Open, clock: FrozenClock) -> None:
    crawlers = await _side_by_side(open_another, clock, 4)
    await crawlers[0].enqueue(*(_host(n) for n in range(60)))
    rounds = [await asyncio.gather(*(crawler.claim(2) for crawler in crawlers)) for _ in range(10)]
    crawls = [claim.crawl_id for each in rounds for claims in each for claim in claims]
    assert len(crawls) == len(set(crawls)) == 60


async def test_F23_P2_workers_that_meet_at_the_same_hosts_take_every_page_once(
    open_another: Open, clock: FrozenClock
) -> None:
    crawlers = await _side_by_side(open_another, clock, 4)
    wanted = [f"{_host(n)}{page}" for page in range(4) for n in range(12)]
    await crawlers[0].enqueue(*wanted)
    seen: list[str] = []
    busy: dict[str, str] = {}

    async def work(crawler: ManualCrawler) -> None:
        while len(seen) < len(wanted):
            claims = await crawler.claim(5)
            for claim in claims:
                assert busy.setdefault(claim.domain, crawler.worker) == crawler.worker, "a host has one worker"
            await asyncio.sleep(0)
            for domain in {claim.domain for claim in claims}:
                del busy[domain]
            seen.extend(await crawler.commit(*[crawler.visit(each, read(each.page.url)) for each in claims]))

    await asyncio.gather(*map(work, crawlers))
    assert sorted(seen) == sorted(wanted)


@pytest.mark.slow
async def test_200_commits_of_4_writers_are_all_kept(open_another: Open, clock: FrozenClock) -> None:
    crawlers = await _side_by_side(open_another, clock, 4)
    await crawlers[0].enqueue(*(_host(n) for n in range(200)))
    seen = await asyncio.gather(*(_work(crawler) for crawler in crawlers))
    assert sorted(url for part in seen for url in part) == sorted(_host(n) for n in range(200))
    run = await crawlers[0].reload()
    assert (run.counts["checked"], run.counts["new"], run.counts["chunks_made"]) == (200, 200, 200)
    assert run.queued == 201, "the page that all of them link to is queued once"
    assert len(await crawlers[0].store.pages.of_source(crawlers[0].source.id)) == 201
    [link] = await crawlers[1].store.links.of_source(crawlers[1].source.id)
    assert link.page_count == 200
    assert len(await crawlers[2].changes(limit=1000)) == 200


async def _work(crawler: ManualCrawler) -> list[str]:
    """Looks at single pages until only the common one is left."""
    seen: list[str] = []
    while claims := [each for each in await crawler.claim(1) if each.page.url != at("common")]:
        seen += await crawler.commit(*[crawler.visit(claim, read(claim.page.url, "common")) for claim in claims])
    return seen


async def test_two_processes_do_not_start_the_same_source(open_another: Open, clock: FrozenClock) -> None:
    crawler = await ManualCrawler.at(await open_another(), clock)
    other = crawler.beside(await open_another(), "w2")
    for each in (crawler, other):
        await each.join()
    started = await asyncio.gather(crawler.begin(), other.begin(), return_exceptions=True)
    assert [type(result) for result in started if result is not False] == [RunBusy]


async def test_a_reader_sees_a_commit_of_another_process_whole(open_another: Open, clock: FrozenClock) -> None:
    """A22: page, chunks, links and attempt come together."""
    writer = await ManualCrawler.at(await open_another(), clock)
    reader = await open_another()
    await writer.crawl({"": read("Root", "a"), "a": read("Quokka")})
    [hit] = await search(reader, "quokka")
    [(page, *_)] = await reader.pages.find(hit.url)
    assert (await reader.pages.content(page.id)).markdown == "Quokka"
    assert [link.url for link in await reader.links.of_source(writer.source.id)] == [at("a")]


async def test_links_that_another_process_cleaned_up_are_made_again(open_another: Open, clock: FrozenClock) -> None:
    """What a long-lived process remembers of links may be gone, and its numbers given to others."""
    here = await ManualCrawler.at(await open_another(), clock)
    there = here.beside(await open_another(), "w2")
    await here.begin()
    await here.enqueue("")
    await here.look({"": read("Root", "first", "second"), "first": read("1"), "second": read("2")})
    await here.finish(RunState.PARTIAL)
    await there.crawl({"": read("Root, without links"), "first": read("1"), "second": read("2")})
    await there.crawl({"": read("Root, with others", "third", "fourth")})
    site: dict[str, Seen] = {"": read("Root, as it was", "first", "second")}
    await here.crawl(site, RunMode.REFRESH)
    assert [link.url for link in await there.store.links.of_source(here.source.id)] == [at("first"), at("second")]
    edges = {link.url: link.pages for link in await here.store.links.of_source(here.source.id, page=ROOT)}
    assert edges == {at("first"): (ROOT,), at("second"): (ROOT,)}


async def test_readers_are_not_in_the_way_of_a_writer(open_another: Open, clock: FrozenClock) -> None:
    crawler = await ManualCrawler.at(await open_another(), clock)
    readers = [await open_another() for _ in range(3)]
    await crawler.begin()
    await crawler.enqueue(*(f"p{n}" for n in range(40)))

    async def write() -> int:
        return len(await crawler.look({f"p{n}": read(f"Quokka {n}") for n in range(40)}, batch=2))

    async def watch(number: int) -> list[int]:
        return [len(await search(readers[number], "quokka", limit=100)) for _ in range(15)]

    written, watched = await asyncio.gather(write(), asyncio.gather(*(watch(n) for n in range(3))))
    assert written == 40
    assert all(counts == sorted(counts) for counts in watched), "nothing that was there goes away"


ROWS, PROCESSES = 320, 16


async def _take(url: str, worker: str, run: Run, barrier: Barrier) -> list[int]:
    store = await open_store(url)
    barrier.wait(60)
    taken: list[int] = []
    while claims := await store.queue.claim(run.id, worker, FrozenClock()(), limit=1):
        taken += [claim.crawl_id for claim in claims]
    await store.close()
    return taken


def _grab(url: str, worker: str, run: Run, barrier: Barrier, results: "SimpleQueue[list[int]]") -> None:
    results.put(asyncio.run(_take(url, worker, run, barrier)))


async def test_F23_16_processes_that_start_together_never_get_the_same_row(
    sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    """Each row is alone on its host, so all sixteen want the same one every time."""
    await sqlite_crawler.begin()
    await sqlite_crawler.enqueue(*(_host(n) for n in range(ROWS)))
    context = forking()
    barrier, results = context.Barrier(PROCESSES), context.SimpleQueue()
    processes = [
        context.Process(target=_grab, args=(f"sqlite:///{sqlite_file}", f"w{n}", sqlite_crawler.run, barrier, results))
        for n in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    taken = [crawl for _ in processes for crawl in results.get()]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert len(taken) == len(set(taken)) == ROWS
