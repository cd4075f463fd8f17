"""What pictures are drawn from."""

from datetime import UTC, date, datetime, timedelta

from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.model.charts import DayCount, UpcomingChecks, upcoming_by_hour
from afresh.model.fetch import Gone, Seen
from afresh.model.records import PageStatus, SourceId
from afresh.services.charts import hosts_of, site_map, upcoming_checks
from afresh.urls.canonical import domain_of

SITE: dict[str, Seen] = {
    "": read("Root", "a", "b", "https://elsewhere.example.com/"),
    "a": read("Page a", "c", ""),
    "b": read("Page b", "c", "b", "a"),
    "c": read("Page c", ""),
}


async def test_changes_are_counted_by_day_of_utc_and_kind(crawler: ManualCrawler) -> None:
    crawler.clock.set(datetime(2026, 3, 1, 23, 0, tzinfo=UTC))
    await crawler.crawl(SITE)
    crawler.clock.set(datetime(2026, 3, 2, 0, 0, tzinfo=UTC))
    await crawler.crawl({**SITE, "a": read("Page a, anew", "c", ""), "c": Gone()})
    first, second, here = date(2026, 3, 1), date(2026, 3, 2), crawler.source.id
    store, since = crawler.store, date(2026, 3, 1)
    assert await store.stats.changes_by_day([here, SourceId(999_999_999)], since) == [
        DayCount(here, first, "new", 4),
        DayCount(here, second, "changed", 1),
        DayCount(here, second, "deleted", 1),
    ]
    assert len(await store.stats.changes_by_day([here], since + timedelta(days=1))) == 2
    assert await store.stats.changes_by_day([SourceId(999_999_999)], since) == []
    assert await store.stats.changes_by_day([], since) == []


async def test_a_map_shows_the_nearest_pages_and_the_shortest_way_to_each(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    whole = await site_map(crawler.store, crawler.source.id, 10)
    names = {node.id: node.url.removeprefix(ROOT) for node in whole.nodes}
    assert list(names.values()) == ["", "a", "b", "c"]
    assert [names.get(node.parent) if node.parent else None for node in whole.nodes] == [None, "", "", "a"]
    assert sorted((names[start], names[end]) for start, end in whole.links) == [
        ("a", ""),
        ("b", "a"),
        ("b", "c"),
        ("c", ""),
    ]
    assert (whole.pages, whole.pages_left_out, whole.links_left_out) == (4, 0, 0)
    assert {node.status for node in whole.nodes} == {PageStatus.ACTIVE}

    part = await site_map(crawler.store, crawler.source.id, 2)
    assert [node.url for node in part.nodes] == [ROOT, at("a")]
    assert (part.pages, part.pages_left_out) == (4, 2)
    assert [(names[start], names[end]) for start, end in part.links] == [("a", "")]
    assert (await site_map(crawler.store, SourceId(999_999_999), 10)).nodes == ()


async def test_hosts_have_what_waits_for_them_and_whether_they_pause(crawler: ManualCrawler) -> None:
    assert [host.domain for host in await hosts_of(crawler.store, crawler.source, crawler.clock())] == [domain_of(ROOT)]
    assert await hosts_of(crawler.store, None, crawler.clock()) == ()
    await crawler.join()
    await crawler.begin()
    await crawler.enqueue("", "a", "b")
    await crawler.claim(1)
    [host] = await hosts_of(crawler.store, crawler.source, crawler.clock())
    assert (host.domain, host.waiting, host.held, host.worked_on) == (domain_of(ROOT), 2, 1, True)
    assert (host.resting, host.next_allowed_at, host.oldest) == (False, None, crawler.clock())

    until = crawler.clock() + timedelta(seconds=90)
    await crawler.store.queue.pause_host(host.domain, until)
    await crawler.store.queue.pause_host("slow.example.org", until)
    states = {each.domain: each for each in await hosts_of(crawler.store, None, crawler.clock())}
    assert states[host.domain].resting
    assert states["slow.example.org"].next_allowed_at == until
    assert [each.domain for each in await hosts_of(crawler.store, crawler.source, crawler.clock())] == [host.domain]
    assert not any(each.resting for each in await hosts_of(crawler.store, None, until))


async def test_looks_ahead_are_counted_by_the_hour(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    now = crawler.clock()
    ahead = await upcoming_checks(crawler.store, crawler.source.id, now)
    hours = int(crawler.policy.recheck_seconds // 3600)
    assert (ahead.due, ahead.hours[hours], sum(ahead.hours), ahead.later) == (0, 4, 4, 0)
    assert (await upcoming_checks(crawler.store, crawler.source.id, now - timedelta(days=3))).due == 4
    assert upcoming_by_hour(2, {now + timedelta(days=9): 3}, now, 24) == UpcomingChecks(due=2, hours=(0,) * 24, later=3)
    assert (await upcoming_checks(crawler.store, crawler.source.id, now + timedelta(days=3))).due == 4
    assert (await upcoming_checks(crawler.store, SourceId(999_999_999), now)).due == 0
