"""Webhooks in the store: a message is taken once, and wishes come together."""

from tests.store.crawler import ManualCrawler

from afresh.notify.incoming import RefreshRequest


def counted(requests: list[RefreshRequest]) -> list[tuple[str, int]]:
    return [(request.url, request.times) for request in requests]


async def test_F100_a_delivery_is_taken_once_and_requests_are_merged(crawler: ManualCrawler) -> None:
    store, source, now = crawler.store, crawler.source.id, crawler.clock()
    assert await store.messages.take_delivery("cms", "1", [(source, "u:b"), (source, "u:a")], now)
    assert not await store.messages.take_delivery("cms", "1", [(source, "u:c")], now)
    assert await store.messages.take_delivery("github", "1", [(source, ""), (source, "u:a")], crawler.clock.advance(5))
    before = list(await store.messages.refresh_requests())
    assert sorted(counted(before)) == [("", 1), ("u:a", 2), ("u:b", 1)]
    assert len(await store.messages.refresh_requests(limit=2)) == 2

    await store.messages.take_delivery("cms", "2", [(source, "u:b")], crawler.clock())  # while they are looked at
    await store.messages.fulfil(before)
    assert counted(list(await store.messages.refresh_requests())) == [("u:b", 2)]
    await store.sources.remove(source, crawler.clock())
    assert list(await store.messages.refresh_requests()) == []
