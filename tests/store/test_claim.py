"""Claims: nearest pages first, one worker per host, hosts handed over and left to rest."""

from dataclasses import replace
from datetime import timedelta

from tests.store.crawler import LEASE, ROOT, ManualCrawler, at, read

from afresh.model.fetch import Failed, Outcome
from afresh.model.records import RunLimits, RunState
from afresh.store.store import Store

OTHER = "https://api.example.org/"


async def _started(crawler: ManualCrawler, *paths: str) -> ManualCrawler:
    await crawler.begin()
    for path in paths or ("", "a", "b"):
        await crawler.enqueue(path)
    return crawler


async def _addresses(crawler: ManualCrawler, limit: int = 1000) -> list[str]:
    return [claim.page.url for claim in await crawler.claim(limit)]


async def test_the_nearest_pages_come_first_then_the_first_to_arrive(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("deep", depth=3)
    await crawler.enqueue("a", "b", "c", depth=1)
    await crawler.enqueue("d", depth=1)
    await crawler.enqueue("")
    assert await _addresses(crawler, 4) == [at(""), at("a"), at("b"), at("c")]
    assert await _addresses(crawler) == [at("d"), at("deep")]
    assert await _addresses(crawler) == []


async def test_a_page_that_lies_nearer_than_thought_is_claimed_earlier(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.enqueue("other", depth=2)
    await crawler.enqueue("target", depth=5)
    [root] = await crawler.claim(1)
    await crawler.commit(crawler.visit(root, read("Root", "target")))
    assert await _addresses(crawler) == [at("target"), at("other")]


async def test_a_claim_carries_the_page_as_it_is_stored(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", etag='"v1"', language="en")})
    await crawler.begin()
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    assert claim.page == await crawler.page("")
    assert claim.page.validators.etag == '"v1"'
    assert (claim.run_id, claim.domain) == (crawler.run.id, "docs.example.org")


async def test_what_is_not_due_is_not_claimed(crawler: ManualCrawler) -> None:
    """A retry waits for its time (B4: it is a row of its own)."""
    await crawler.crawl({"": read("Root")})
    await crawler.begin()
    assert await _addresses(crawler) == []
    backlog = await crawler.store.queue.backlog(crawler.run.id)
    assert (backlog.open, backlog.held, backlog.next_at) == (0, 0, None)


async def test_only_rows_of_the_run_are_claimed(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    await _started(crawler, "a")
    await _started(other, "b")
    assert await _addresses(other) == [at("b")]


async def test_the_backlog_has_what_is_open_held_and_next(crawler: ManualCrawler) -> None:
    await _started(crawler)
    now = crawler.clock()
    assert (await crawler.store.queue.backlog(crawler.run.id)).next_at == now
    await crawler.claim(2)
    backlog = await crawler.store.queue.backlog(crawler.run.id)
    assert (backlog.open, backlog.held, backlog.next_at) == (3, 2, now)
    await crawler.claim(1)
    assert (await crawler.store.queue.backlog(crawler.run.id)).next_at is None


# ---- one worker per host


async def test_B16_a_host_held_by_another_worker_is_not_claimed(crawler: ManualCrawler) -> None:
    await _started(crawler, "", "a", OTHER)
    second = crawler.beside(crawler.store, "w2")
    assert await _addresses(crawler, 1) == [ROOT]
    assert await _addresses(second) == [OTHER]
    assert await _addresses(second) == []


async def _two_sources(crawler: ManualCrawler) -> tuple[ManualCrawler, ManualCrawler]:
    """Two workers, each with a run of its own on the same host."""
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    other.worker = "w2"
    return await _started(crawler), await _started(other, "c")


async def test_a_wanted_host_is_handed_over_when_nothing_of_it_is_in_flight(crawler: ManualCrawler) -> None:
    first, second = await _two_sources(crawler)
    claims = await first.claim(2)
    assert await _addresses(second) == []
    assert await _addresses(first) == [], "it takes no more of a host that another waits for"
    await first.commit(*[first.visit(claim, read(claim.page.url)) for claim in claims])
    assert await _addresses(second) == [], "it is not handed over before the holder comes by"
    assert await _addresses(first) == []
    assert await _addresses(second) == [at("c")]


async def test_a_host_is_not_handed_over_while_a_look_is_under_way(crawler: ManualCrawler) -> None:
    crawler, second = await _two_sources(crawler)
    one, two = await crawler.claim(2)
    assert await _addresses(second) == []
    await crawler.commit(crawler.visit(one, read("One")))
    assert await _addresses(crawler) == []
    assert await _addresses(second) == []
    await crawler.commit(crawler.visit(two, read("Two")))
    assert await _addresses(crawler) == []
    assert len(await _addresses(second)) == 1


async def test_P9_the_only_host_of_a_run_stays_with_its_worker(crawler: ManualCrawler) -> None:
    """Workers that pass it round would wait for each other and get no further."""
    await _started(crawler, *(f"p{n}" for n in range(6)))
    second = crawler.beside(crawler.store, "w2")
    for _ in range(3):
        claims = await crawler.claim(2)
        assert len(claims) == 2
        assert await _addresses(second) == []
        await crawler.commit(*[crawler.visit(claim, read("Text")) for claim in claims[1:]])


async def test_P9_workers_on_one_run_share_its_hosts_and_then_keep_them(crawler: ManualCrawler) -> None:
    hosts = [f"https://h{n}.example.org/" for n in range(8)]
    await _started(crawler, *(f"{host}{page}" for page in range(20) for host in hosts))
    workers = [crawler, crawler.beside(crawler.store, "w2"), crawler.beside(crawler.store, "w3")]
    looked: list[dict[str, set[str]]] = []
    for _ in range(3):
        looked.append({})
        for each in workers:
            claims = await each.claim(8)
            looked[-1][each.worker] = {claim.domain for claim in claims}
            await each.commit(*[each.visit(claim, read("Text")) for claim in claims])
    assert [len(domains) for domains in looked[0].values()] == [8, 0, 0], "who comes first takes all"
    shares = [len(domains) for domains in looked[1].values()]
    assert sum(shares) == len(hosts), "each host has one worker"
    assert min(shares) > 0, "nobody is idle while another has several hosts"
    assert looked[2] == looked[1], "nobody wants what others have as long as there is enough to do"


async def test_a_host_from_another_worker_differs_from_one_that_stays(crawler: ManualCrawler) -> None:
    """Who gets it keeps the distance to the looks of the one before."""
    await _started(crawler, *(f"p{n}" for n in range(6)))
    [first] = await crawler.claim(1)
    [second] = await crawler.claim(1)
    assert (first.starts_delay, second.starts_delay) == (False, False), "nobody looked at it before"
    await crawler.store.workers.release("w1", crawler.clock())
    later = crawler.beside(crawler.store, "w2")
    assert [claim.starts_delay for _ in range(3) for claim in await later.claim(1)] == [True, False, False]


async def test_B16_hosts_of_which_enough_is_claimed_are_passed_over(crawler: ManualCrawler) -> None:
    await _started(crawler, "", "a", OTHER)
    claims = await crawler.store.queue.claim(
        crawler.run.id, "w1", crawler.clock(), limit=9, crowded=frozenset({"docs.example.org"})
    )
    assert [claim.page.url for claim in claims] == [OTHER]
    assert len(await _addresses(crawler)) == 2


async def test_F19_F20_a_claim_whose_answer_was_lost_is_not_lost(crawler: ManualCrawler) -> None:
    """The server is restarted between commit and answer: who asks again gets what it holds, as if new."""
    await _started(crawler, *(f"p{n}" for n in range(6)))
    fresh = await crawler.store.queue.claim_again(crawler.run.id, "w1", crawler.clock(), limit=2)
    held = await crawler.store.queue.claim_again(crawler.run.id, "w1", crawler.clock(), limit=2)
    assert [claim.crawl_id for claim in held] == [claim.crawl_id for claim in fresh]
    assert [claim.starts_delay for claim in held] == [True, True], "another may have asked the host a moment ago"
    crawler.clock.advance(1)
    [later] = await crawler.store.queue.claim_again(crawler.run.id, "w1", crawler.clock(), limit=1)
    assert later.crawl_id not in {claim.crawl_id for claim in held}
    assert len(await crawler.commit(*[crawler.visit(claim, read("Text")) for claim in (*held, later)])) == 3


async def test_two_workers_that_want_the_same_host_take_turns_until_both_are_done(crawler: ManualCrawler) -> None:
    """Two sources on one host, two processes: a host that is handed over is not handed back unused."""
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    other.worker = "w2"
    for each in (crawler, other):
        await _started(each, *(f"p{n}" for n in range(6)))
    looks = []
    for _ in range(40):
        for each in (crawler, crawler, other):  # the first comes by twice as often
            claims = await each.claim(2)
            looks += [each.worker] * len(claims)
            await each.commit(*[each.visit(claim, read("Text")) for claim in claims])
        crawler.clock.advance(1)
    assert looks.count("w1") == looks.count("w2") == 6
    assert len(set(looks[:6])) == 2, "nobody waits until the other is done"


async def test_a_holder_that_has_nothing_to_do_hands_a_host_over(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    other.worker = "w2"
    await _started(crawler, "")
    await _started(other, "a")
    [claim] = await crawler.claim()
    assert await _addresses(other) == []
    await crawler.commit(crawler.visit(claim, read("Root")))
    assert await _addresses(crawler) == []
    assert await _addresses(other) == [at("a")]


async def test_a_host_handed_to_a_worker_with_nothing_due_goes_back(crawler: ManualCrawler) -> None:
    """One waits an hour for a retry; the other need not wait with it."""
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    other.worker, other.policy = "w2", replace(other.policy, retries=9, backoff_base_seconds=3600)
    await _started(other, "x")
    await other.look({"x": Failed(outcome=Outcome.TIMEOUT, reason="no answer")})
    await _started(crawler, *(f"p{n}" for n in range(6)))
    looks = []
    for _ in range(30):
        for each in (crawler, other):
            claims = await each.claim(2)
            looks += [claim.page.url for claim in claims]
            await each.commit(*[each.visit(claim, read("Text")) for claim in claims])
        crawler.clock.advance(1)
    assert looks == [at(f"p{n}") for n in range(6)]


async def test_a_worker_that_wants_nothing_of_a_host_gets_nothing_of_it(crawler: ManualCrawler) -> None:
    """Two runs, two hosts: neither is in the other's way."""
    await _started(crawler, "", "a")
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    other.worker = "w2"
    await _started(other, OTHER)
    assert await _addresses(crawler, 1) == [ROOT]
    assert await _addresses(other) == [OTHER]
    assert await _addresses(crawler) == [at("a")]


async def test_B7_F28_a_host_belongs_to_its_worker_until_that_leaves_or_is_taken_for_dead(
    crawler: ManualCrawler,
) -> None:
    """No clock ends it: who holds a host paces it, and learns that it lost it together with its pages."""
    await _started(crawler)
    second = crawler.beside(crawler.store, "w2")
    [claim] = await crawler.claim(1)
    crawler.clock.advance(100 * LEASE)
    assert await _addresses(second) == []
    await crawler.commit(crawler.visit(claim, read("One")))
    assert await crawler.store.workers.lock_owners() == {"w1"}, "who held a host and is gone is found by it"
    await crawler.store.workers.reclaim(["w1"], crawler.clock())
    assert await crawler.store.workers.lock_owners() == set()
    assert len(await _addresses(second)) == 2


async def test_a_worker_that_left_is_not_waited_for(crawler: ManualCrawler) -> None:
    """A host that was wanted by a worker that is no more stays with its holder."""
    await _started(crawler)
    second = crawler.beside(crawler.store, "w2")
    [claim] = await crawler.claim(1)
    assert await _addresses(second) == []
    await second.store.workers.release("w2", crawler.clock())
    await crawler.commit(crawler.visit(claim, read("One")))
    assert len(await _addresses(crawler)) == 2


async def test_a_host_taken_from_a_dead_worker_is_not_handed_to_a_former_waiter(crawler: ManualCrawler) -> None:
    """Who takes a host over starts with a clean slate."""
    await _started(crawler)
    second = crawler.beside(crawler.store, "w2")
    await crawler.claim(1)
    assert await _addresses(second) == []
    third = crawler.beside(crawler.store, "w3")
    await crawler.store.workers.reclaim(["w1"], crawler.clock())
    assert len(await _addresses(third, 1)) == 1
    assert len(await _addresses(third, 1)) == 1, "it waits for nobody"


async def test_a_released_host_is_free_at_once(crawler: ManualCrawler) -> None:
    await _started(crawler)
    second = crawler.beside(crawler.store, "w2")
    await crawler.claim(1)
    await crawler.store.workers.release("w1", crawler.clock())
    assert len(await _addresses(second)) == 3


# ---- rest


async def test_F75_a_paused_host_rests_for_every_worker_exactly_so_long(crawler: ManualCrawler) -> None:
    await _started(crawler, "", OTHER)
    await crawler.store.queue.pause_host("docs.example.org", crawler.clock() + timedelta(seconds=30))
    assert await _addresses(crawler) == [OTHER]
    crawler.clock.advance(29.9)
    assert await _addresses(crawler.beside(crawler.store, "w2")) == []
    crawler.clock.advance(0.2)
    assert await _addresses(crawler) == [ROOT]


async def test_F75_a_shorter_pause_does_not_end_a_longer_one(crawler: ManualCrawler) -> None:
    await _started(crawler)
    now = crawler.clock()
    await crawler.store.queue.pause_host("docs.example.org", now + timedelta(seconds=60))
    await crawler.store.queue.pause_host("docs.example.org", now + timedelta(seconds=5))
    crawler.clock.advance(59)
    assert await _addresses(crawler) == []
    crawler.clock.advance(2)
    assert len(await _addresses(crawler)) == 3


async def test_a_pause_survives_the_worker_that_asked_for_it(crawler: ManualCrawler) -> None:
    await _started(crawler)
    await crawler.claim(1)
    await crawler.store.queue.pause_host("docs.example.org", crawler.clock() + timedelta(seconds=60))
    await crawler.store.workers.release("w1", crawler.clock())
    assert await _addresses(crawler.beside(crawler.store, "w2")) == []


async def test_an_empty_store_has_nothing_to_claim(store: Store, crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=0, max_depth=0)
    await crawler.begin()
    assert await crawler.enqueue("") == 0
    assert await _addresses(crawler) == []
    assert (await crawler.finish(RunState.FAILED)).state is RunState.FAILED


async def test_claims_given_back_wait_as_before(crawler: ManualCrawler) -> None:
    """Neither an attempt nor a crash: nobody looked."""
    await _started(crawler, "", "a")
    first, second = await crawler.claim()
    await crawler.store.queue.give_back([second], crawler.worker, crawler.clock())
    assert [claim.page.url for claim in await crawler.claim()] == [second.page.url]
    assert len(await crawler.store.history.of_page(second.page.id)) == 1
    assert len(await crawler.commit(crawler.visit(first, read("Text")))) == 1


async def test_F75_a_backlog_is_due_when_its_host_has_rested(crawler: ManualCrawler) -> None:
    await _started(crawler, "", "a")
    until = crawler.clock() + timedelta(seconds=90)
    await crawler.store.queue.pause_host("docs.example.org", until)
    assert (await crawler.store.queue.backlog(crawler.run.id)).next_at == until
