"""Tokens, logins, and stored responses to requests with an idempotency key."""

import json
from collections.abc import Sequence
from datetime import datetime

from afresh.access.idempotency import GIVEN_UP, KEPT, StoredResponse
from afresh.access.permissions import MAX_LOGINS, AccessToken, TokenScope, same
from afresh.store.records import record
from afresh.store.repository import Repository


class AccessRepository(Repository):
    async def add_token(
        self,
        *,
        name: str,
        digest: str,
        scope: TokenScope,
        sources: Sequence[str],
        expires_at: datetime | None,
        now: datetime,
    ) -> AccessToken:
        given = {"scope": scope, "labels": json.dumps(list(sources)), "until": expires_at}
        async with self.db.write() as tx:
            return record(AccessToken, await tx.only("add_token", name=name, digest=digest, **given, now=now))

    async def tokens(self) -> list[AccessToken]:
        """Return all tokens, oldest first, including revoked and expired ones."""
        return await self._records(AccessToken, "tokens")

    async def token_of(self, digest: str) -> AccessToken | None:
        """Return the token with this digest; the duration of the lookup may reveal a digest, but no token."""
        row = await self._one("token_by_digest", digest=digest)
        return record(AccessToken, row) if row is not None and same(row["digest"], digest) else None

    async def has_tokens(self) -> bool:
        return await self._one("any_token") is not None

    async def revoke_token(self, token: int, now: datetime) -> bool:
        """Revoke a token and end its logins; return False if there is no such token."""
        async with self.db.write() as tx:
            await tx.run("end_logins_of", token=token)
            return bool(await tx.run("revoke_token", number=token, now=now))

    async def add_login(self, digest: str, token: int, expires_at: datetime, now: datetime) -> None:
        """Store a login; delete expired logins, and the oldest logins of a token that has too many."""
        async with self.db.write() as tx:
            await tx.run("add_login", digest=digest, token=token, until=expires_at)
            await tx.run("forget_logins", token=token, now=now, most=MAX_LOGINS)

    async def token_of_login(self, digest: str, now: datetime) -> AccessToken | None:
        row = await self._one("token_by_login", digest=digest, now=now)
        return record(AccessToken, row) if row is not None and same(row["login"], digest) else None

    async def end_login(self, digest: str) -> None:
        await self._run("end_login", digest=digest)

    async def begin_answer(self, caller: str, name: str, request_hash: str, now: datetime) -> StoredResponse | None:
        """Reserve the idempotency key `name` and return None; if it is already used, return what is stored for it."""
        async with self.db.write() as tx:
            await tx.run("forget_replies", before=now - KEPT)
            key = {"caller": caller, "name": name}
            if await tx.one("begin_reply", **key, asked=request_hash, now=now):
                return None
            if await tx.one("begin_reply_again", **key, asked=request_hash, now=now, since=now - GIVEN_UP):
                return None
            row = await tx.only("kept_reply", **key)
            return StoredResponse(row["asked"], row["status_code"], row["location"], row["body"])

    async def renew_answer(self, caller: str, name: str, began: datetime, now: datetime) -> bool:
        """Extend the reservation of the idempotency key `name`; return False if another process has taken it over."""
        async with self.db.write() as tx:
            return bool(await tx.one("renew_reply", caller=caller, name=name, began=began, now=now))

    async def keep_answer(self, caller: str, name: str, began: datetime, answer: StoredResponse) -> None:
        given = {"status_code": answer.status, "location": answer.location, "body": answer.body}
        await self._run("keep_reply", caller=caller, name=name, began=began, **given)

    async def forget_answer(self, caller: str, name: str, began: datetime) -> None:
        """Release the idempotency key of a request that failed without a response, so that it can be repeated."""
        await self._run("forget_reply", caller=caller, name=name, began=began)
