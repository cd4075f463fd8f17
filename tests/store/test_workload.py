"""What is told of the work at hand: who holds pages, and which hosts are waited for."""

from dataclasses import replace

from tests.store.desk import Desk

OTHER = "https://api.example.org/"


async def test_who_holds_pages_and_which_hosts_are_waited_for(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("a", "b", "c", OTHER, depth=1)
    assert await desk.store.workers.held_by() == {}
    assert [
        (each.domain, each.waiting, each.held)
        for each in await desk.store.stats.busiest_hosts(10, [desk.worker])
    ] == [
        ("docs.example.org", 3, 0),
        ("api.example.org", 1, 0),
    ]
    since = desk.clock()
    assert len(await desk.claim(2)) == 2
    assert await desk.store.workers.held_by() == {desk.worker: 2}
    hosts = {each.domain: each for each in await desk.store.stats.busiest_hosts(10, [desk.worker])}
    assert sum(each.held for each in hosts.values()) == 2
    assert sum(each.waiting for each in hosts.values()) == 2
    assert {each.oldest for each in hosts.values() if each.waiting} == {since}
    assert len(await desk.store.stats.busiest_hosts(1, [desk.worker])) == 1


async def test_U4_F162_in_flight_is_what_live_workers_hold_and_the_rest_is_queued(desk: Desk) -> None:
    await desk.begin()
    since = desk.clock()
    await desk.enqueue("a", "b", OTHER, OTHER + "b", depth=1)
    dead = desk.beside(desk.store, "dead")
    assert (len(await desk.claim(1)), len(await dead.claim(1))) == (1, 1)
    for workers, waiting, held in (((), 4, 0), ((desk.worker,), 3, 1), ((desk.worker, "dead"), 2, 2)):
        load = await desk.store.stats.workload(workers)
        assert (load.waiting, load.held, load.oldest) == (waiting, held, since)
        hosts = await desk.store.stats.busiest_hosts(10, workers)
        assert (sum(each.waiting for each in hosts), sum(each.held for each in hosts)) == (waiting, held)
        assert {each.oldest for each in hosts} == {since}
    assert (len(await desk.claim(1)), len(await dead.claim(1))) == (1, 1)
    assert (await desk.store.stats.workload((desk.worker, "dead"))).oldest is None


async def test_a_worker_is_known_since_it_joined_whatever_its_heart_does(desk: Desk) -> None:
    await desk.join()
    joined = desk.clock()
    desk.clock.advance(30)
    await desk.beat()
    [worker] = await desk.store.workers.all()
    assert (worker.started_at, worker.heartbeat_at) == (joined, desk.clock())
    late = replace(desk, worker="late")
    await late.beat()  # one that others took for dead is known again
    assert {each.name: each.started_at for each in await desk.store.workers.all()}["late"] == desk.clock()
