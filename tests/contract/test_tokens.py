"""Tokens in the store: by their digest, and never by their text."""

from datetime import timedelta

from afresh.core.access import Scope, digest_of
from afresh.ports import Library
from afresh.testing import FrozenClock


async def test_F102_a_token_is_found_by_its_digest_until_it_is_revoked(
    store: Library, clock: FrozenClock
) -> None:
    assert not await store.has_tokens()
    until = clock() + timedelta(days=90)
    first = await store.add_token(
        name="agents",
        digest=digest_of("one"),
        scope=Scope.READ,
        sources=["react", "b@2"],
        expires_at=until,
        now=clock(),
    )
    second = await store.add_token(
        name="", digest=digest_of("two"), scope=Scope.WRITE, sources=[], expires_at=None, now=clock()
    )
    assert await store.has_tokens()
    assert await store.token_of(digest_of("one")) == first
    assert (first.sources, first.expires_at, first.state(clock())) == (("react", "b@2"), until, "good")
    assert first.state(until) == "expired"
    assert await store.token_of("one") is None
    assert list(await store.tokens()) == [first, second]

    at = clock.advance(60)
    assert await store.revoke_token(first.id, at)
    clock.advance(60)
    assert await store.revoke_token(first.id, clock())  # it stays revoked since then
    assert not await store.revoke_token(4711, clock())
    gone = await store.token_of(digest_of("one"))
    assert gone is not None
    assert (gone.revoked_at, gone.state(clock())) == (at, "revoked")
    assert await store.has_tokens(), "who once had tokens does not become open again"
    assert [each.state(clock()) for each in await store.tokens()] == ["revoked", "good"]
