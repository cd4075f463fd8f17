"""What is told of the work at hand: who holds pages, and which hosts are waited for."""

from dataclasses import replace

from tests.store.crawler import ManualCrawler

OTHER = "https://api.example.org/"


async def test_workers_that_hold_pages_and_hosts_with_queues(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("a", "b", "c", OTHER, depth=1)
    assert await crawler.store.workers.held_by() == {}
    assert [
        (each.domain, each.waiting, each.held) for each in await crawler.store.stats.busiest_hosts(10, [crawler.worker])
    ] == [("docs.example.org", 3, 0), ("api.example.org", 1, 0)]
    since = crawler.clock()
    assert len(await crawler.claim(2)) == 2
    assert await crawler.store.workers.held_by() == {crawler.worker: 2}
    hosts = {each.domain: each for each in await crawler.store.stats.busiest_hosts(10, [crawler.worker])}
    assert sum(each.held for each in hosts.values()) == 2
    assert sum(each.waiting for each in hosts.values()) == 2
    assert {each.oldest for each in hosts.values() if each.waiting} == {since}
    assert len(await crawler.store.stats.busiest_hosts(1, [crawler.worker])) == 1


async def test_U4_F162_in_flight_is_what_live_workers_hold_and_the_rest_is_queued(crawler: ManualCrawler) -> None:
    await crawler.begin()
    since = crawler.clock()
    await crawler.enqueue("a", "b", OTHER, OTHER + "b", depth=1)
    dead = crawler.beside(crawler.store, "dead")
    assert (len(await crawler.claim(1)), len(await dead.claim(1))) == (1, 1)
    for workers, waiting, held in (((), 4, 0), ((crawler.worker,), 3, 1), ((crawler.worker, "dead"), 2, 2)):
        load = await crawler.store.stats.workload(workers)
        assert (load.waiting, load.held, load.oldest) == (waiting, held, since)
        hosts = await crawler.store.stats.busiest_hosts(10, workers)
        assert (sum(each.waiting for each in hosts), sum(each.held for each in hosts)) == (waiting, held)
        assert {each.oldest for each in hosts} == {since}
    assert (len(await crawler.claim(1)), len(await dead.claim(1))) == (1, 1)
    assert (await crawler.store.stats.workload((crawler.worker, "dead"))).oldest is None


async def test_a_worker_is_known_since_it_joined_whatever_its_heartbeat(crawler: ManualCrawler) -> None:
    await crawler.join()
    joined = crawler.clock()
    crawler.clock.advance(30)
    await crawler.beat()
    [worker] = await crawler.store.workers.all()
    assert (worker.started_at, worker.heartbeat_at) == (joined, crawler.clock())
    late = replace(crawler, worker="late")
    await late.beat()  # one that others took for dead is known again
    assert {each.name: each.started_at for each in await crawler.store.workers.all()}["late"] == crawler.clock()
