"""Webhooks in the store: a message is taken once, and wishes come together."""

from tests.store.desk import Desk

from afresh.notify.incoming import RefreshRequest


def told(wishes: list[RefreshRequest]) -> list[tuple[str, int]]:
    return [(wish.url, wish.times) for wish in wishes]


async def test_F100_a_message_is_taken_once_and_wishes_come_together(desk: Desk) -> None:
    store, source, now = desk.store, desk.source.id, desk.clock()
    assert await store.messages.take_delivery("cms", "1", [(source, "u:b"), (source, "u:a")], now)
    assert not await store.messages.take_delivery("cms", "1", [(source, "u:c")], now)
    assert await store.messages.take_delivery(
        "github", "1", [(source, ""), (source, "u:a")], desk.clock.advance(5)
    )
    before = list(await store.messages.wishes())
    assert sorted(told(before)) == [("", 1), ("u:a", 2), ("u:b", 1)]
    assert len(await store.messages.wishes(limit=2)) == 2

    await store.messages.take_delivery(
        "cms", "2", [(source, "u:b")], desk.clock()
    )  # while they are looked at
    await store.messages.fulfil(before)
    assert told(list(await store.messages.wishes())) == [("u:b", 2)]
    await store.sources.remove(source, desk.clock())
    assert list(await store.messages.wishes()) == []
