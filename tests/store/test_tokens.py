"""Tokens in the store: by their digest, and never by their text."""

from datetime import timedelta

import pytest

from afresh.access.permissions import TokenScope, digest_of
from afresh.store.store import Store
from afresh.testing import FrozenClock


async def test_F102_a_token_is_found_by_its_digest_until_it_is_revoked(store: Store, clock: FrozenClock) -> None:
    assert not await store.access.has_tokens()
    until = clock() + timedelta(days=90)
    first = await store.access.add_token(
        name="agents",
        digest=digest_of("one"),
        scope=TokenScope.READ,
        sources=["react", "b@2"],
        expires_at=until,
        now=clock(),
    )
    second = await store.access.add_token(
        name="", digest=digest_of("two"), scope=TokenScope.WRITE, sources=[], expires_at=None, now=clock()
    )
    assert await store.access.has_tokens()
    assert await store.access.token_of(digest_of("one")) == first
    assert (first.sources, first.expires_at, first.state(clock())) == (("react", "b@2"), until, "good")
    assert first.state(until) == "expired"
    assert await store.access.token_of("one") is None
    assert list(await store.access.tokens()) == [first, second]

    at = clock.advance(60)
    assert await store.access.revoke_token(first.id, at)
    clock.advance(60)
    assert await store.access.revoke_token(first.id, clock())  # it stays revoked since then
    assert not await store.access.revoke_token(4711, clock())
    gone = await store.access.token_of(digest_of("one"))
    assert gone is not None
    assert (gone.revoked_at, gone.state(clock())) == (at, "revoked")
    assert await store.access.has_tokens(), "who once had tokens does not become open again"
    assert [each.state(clock()) for each in await store.access.tokens()] == ["revoked", "good"]


async def test_F102_a_login_stands_for_its_token_until_it_ends(
    store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = [
        await store.access.add_token(
            name="", digest=name, scope=TokenScope.READ, sources=[], expires_at=None, now=clock()
        )
        for name in ("one", "two")
    ]
    hour = timedelta(hours=1)

    async def behind(*logins: str) -> list[int | None]:
        found = [await store.access.token_of_login(each, clock()) for each in logins]
        return [each.id if each else None for each in found]

    await store.access.add_login("a", first.id, clock() + hour, clock())
    await store.access.add_login("b", first.id, clock() + 2 * hour, clock())
    await store.access.add_login("c", second.id, clock() + 3 * hour, clock())
    assert await behind("a", "b", "c", "d") == [first.id, first.id, second.id, None]
    assert await store.access.token_of_login("c", clock()) == second
    clock.advance(hour.total_seconds())
    assert await behind("a", "b") == [None, first.id]
    await store.access.end_login("b")
    await store.access.end_login("b")
    assert await behind("b", "c") == [None, second.id]

    await store.access.add_login("e", first.id, clock() + hour, clock())
    await store.access.revoke_token(first.id, clock())
    assert await behind("a", "e", "c") == [None, None, second.id]

    monkeypatch.setattr("afresh.store.access.MAX_LOGINS", 2)
    for number, name in enumerate("fgh"):
        await store.access.add_login(name, second.id, clock() + (number + 4) * hour, clock())
    assert await behind("c", "f", "g", "h") == [None, None, second.id, second.id]
