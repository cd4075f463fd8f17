"""Tokens, logins and kept answers in the store."""

import json
from collections.abc import Sequence
from datetime import datetime

from afresh.access.idempotency import GIVEN_UP, KEPT, KeptAnswer
from afresh.access.permissions import MOST_LOGINS, Scope, Token, same
from afresh.store.dialect import Row
from afresh.store.records import at, certain
from afresh.store.repository import Repository


class AccessRepository(Repository):
    """Read and write tokens, logins and the answers kept for an idempotency key."""

    async def add_token(
        self,
        *,
        name: str,
        digest: str,
        scope: Scope,
        sources: Sequence[str],
        expires_at: datetime | None,
        now: datetime,
    ) -> Token:
        """Keep a token."""
        labels = json.dumps(list(sources))
        async with self.db.write() as tx:
            row = await tx.one(
                "add_token", name=name, digest=digest, scope=scope, labels=labels, until=expires_at, now=now
            )
            assert row is not None  # noqa: S101 - just inserted
            return _token(row)

    async def tokens(self) -> list[Token]:
        """All that were ever made, in that order."""
        async with self.db.read() as tx:
            return [_token(row) for row in await tx.all("tokens")]

    async def token_of(self, digest: str) -> Token | None:
        """The token with this digest; how far an index looks tells only of digests, and those are random."""
        async with self.db.read() as tx:
            row = await tx.one("token_by_digest", digest=digest)
            return _token(row) if row is not None and same(row["digest"], digest) else None

    async def has_tokens(self) -> bool:
        """Whether one was ever made."""
        async with self.db.read() as tx:
            return await tx.one("any_token") is not None

    async def revoke_token(self, token: int, now: datetime) -> bool:
        """Make a token useless from now on."""
        async with self.db.write() as tx:
            await tx.run("end_logins_of", token=token)
            return bool(await tx.run("revoke_token", number=token, now=now))

    async def add_login(self, digest: str, token: int, expires_at: datetime, now: datetime) -> None:
        """Keep a login; those that expired, and the oldest of many with one token, go."""
        async with self.db.write() as tx:
            await tx.run("add_login", digest=digest, token=token, until=expires_at)
            await tx.run("forget_logins", token=token, now=now, most=MOST_LOGINS)

    async def token_of_login(self, digest: str, now: datetime) -> Token | None:
        """The token that a login stands for."""
        async with self.db.read() as tx:
            row = await tx.one("token_by_login", digest=digest, now=now)
            return _token(row) if row is not None and same(row["login"], digest) else None

    async def end_login(self, digest: str) -> None:
        """Forget a login."""
        async with self.db.write() as tx:
            await tx.run("end_login", digest=digest)

    async def begin_answer(self, caller: str, name: str, asked: str, now: datetime) -> KeptAnswer | None:
        """What is known of a request; None: it is the caller's to answer."""
        async with self.db.write() as tx:
            await tx.run("forget_replies", before=now - KEPT)
            key = {"caller": caller, "name": name}
            if await tx.one("begin_reply", **key, asked=asked, now=now):
                return None
            if await tx.one("begin_reply_again", **key, asked=asked, now=now, since=now - GIVEN_UP):
                return None
            row = await tx.one("kept_reply", **key)
            assert row is not None  # noqa: S101 - the insert met it
            return KeptAnswer(row["asked"], row["status_code"], row["location"], row["body"])

    async def renew_answer(self, caller: str, name: str, began: datetime, now: datetime) -> bool:
        """Say that what began then goes on; False if others began anew."""
        async with self.db.write() as tx:
            return bool(await tx.one("renew_reply", caller=caller, name=name, began=began, now=now))

    async def keep_answer(self, caller: str, name: str, began: datetime, answer: KeptAnswer) -> None:
        """Remember the answer to what began then."""
        async with self.db.write() as tx:
            told = {"status_code": answer.status, "location": answer.location, "body": answer.body}
            await tx.run("keep_reply", caller=caller, name=name, began=began, **told)

    async def forget_answer(self, caller: str, name: str, began: datetime) -> None:
        """Let the request be made again: what began then came to nothing."""
        async with self.db.write() as tx:
            await tx.run("forget_reply", caller=caller, name=name, began=began)


def _token(row: Row) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        scope=Scope(row["scope"]),
        sources=tuple(json.loads(row["sources"])),
        created_at=certain(row["created_at"]),
        expires_at=at(row["expires_at"]),
        revoked_at=at(row["revoked_at"]),
    )
