"""Tokens in the store: one row each, by the digest of its text."""

import json
from collections.abc import Sequence
from datetime import datetime

from afresh.core.access import MOST_LOGINS, Scope, Token, same
from afresh.store.dialect import Database, Row
from afresh.store.records import at, certain


class TokenRecords:
    """Reading and writing tokens."""

    db: Database

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
