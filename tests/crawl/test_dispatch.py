"""Claims in line, host by host."""

import asyncio

from afresh.crawl.hosts import HostDispatcher, HostLimiter
from afresh.model.records import Claim, CrawlId, Page, PageId, RunId, SourceId


def _claim(domain: str, number: int) -> Claim:
    page = Page(id=PageId(number), source_id=SourceId(1), url=f"https://{domain}/{number}")
    return Claim(crawl_id=CrawlId(number), page=page, run_id=RunId(1), domain=domain)


def _lined_up(hosts: HostLimiter, *domains: str) -> HostDispatcher:
    line = HostDispatcher(hosts)
    for number, domain in enumerate(domains):
        line.put((0, _claim(domain, number)))
    return line


async def _next(line: HostDispatcher) -> tuple[str, int]:
    async with asyncio.timeout(20):
        _, claim = await line.get()
    return claim.domain, int(claim.crawl_id)


async def test_F113_B16_a_slow_host_holds_up_no_other() -> None:
    """Ten pages of a host that does not answer come first: two are under way, and the eleventh follows."""
    line = _lined_up(HostLimiter(2), *["slow"] * 10, "quick", "quick")
    assert [await _next(line) for _ in range(4)] == [("slow", 0), ("slow", 1), ("quick", 10), ("quick", 11)]
    assert line.ready_count == 2, "all that is left waits for the slow one"
    assert line.crowded_hosts(8) == {"slow"}
    assert not line.crowded_hosts(9)
    line.done("slow")
    assert await _next(line) == ("slow", 2)
    assert line.clear() == 7
    assert len(line) == 0


async def test_B16_a_host_that_wants_a_distance_is_asked_one_by_one_and_nobody_sleeps_there() -> None:
    hosts = HostLimiter(3)
    hosts.learn("a", 0.05)
    line, loop = _lined_up(hosts, "a", "a", "b"), asyncio.get_running_loop()
    assert [await _next(line) for _ in range(2)] == [("a", 0), ("b", 2)]
    assert await hosts.enter("a")
    hosts.leave("a")
    began = loop.time()
    line.done("a")
    assert await _next(line) == ("a", 1)
    assert loop.time() - began >= 0.04
