"""The use cases of access: make, list and revoke tokens, know one, and log in with one."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from afresh.access.idempotency import KeptAnswer
from afresh.access.idempotent_request import Turn, begin
from afresh.access.permissions import (
    LONGEST,
    PREFIX,
    Allowed,
    MadeToken,
    Scope,
    Token,
    digest_of,
)
from afresh.errors import UsageError
from afresh.services.context import Service
from afresh.services.resolve import exact_sources
from afresh.text.redact import one_line

RANDOM_BYTES = 32
LONGEST_NAME = 100
LOGIN_LENGTH = timedelta(hours=12)


class TokenService(Service):
    """Tokens and logins."""

    async def create(
        self,
        scope: Scope,
        *,
        sources: Sequence[str] = (),
        expires: timedelta | None = None,
        name: str = "",
    ) -> MadeToken:
        """A new token; its text is in the answer and nowhere else."""
        for label in sources:
            await exact_sources(self._store, label)
        if len(name) > LONGEST_NAME:
            raise UsageError(f"a name has at most {LONGEST_NAME} characters")
        now = self._clock()
        text = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
        made = await self._store.access.add_token(
            name=one_line(name),
            digest=digest_of(text),
            scope=scope,
            sources=tuple(dict.fromkeys(sources)),
            expires_at=now + expires if expires is not None else None,
            now=now,
        )
        return MadeToken(
            token=text,
            id=made.id,
            name=made.name,
            scope=made.scope,
            sources=made.sources,
            expires_at=made.expires_at,
        )

    async def all(self) -> list[Token]:
        """All tokens, in the order in which they were made."""
        return list(await self._store.access.tokens())

    async def revoke(self, token: int) -> None:
        """Make a token useless at once."""
        if not await self._store.access.revoke_token(token, self._clock()):
            raise UsageError(f"there is no token {token}; `afresh token list` shows them")

    async def exist(self) -> bool:
        """Whether a token was ever made: from then on one is asked for."""
        return await self._store.access.has_tokens()

    async def permissions_of(self, text: str) -> Allowed | None:
        """What the holder of a token may do; None if it is unknown, revoked or expired."""
        return self._as_far_as(await self._token(text))

    async def log_in(self, text: str) -> str | None:
        """A new login with a token, as a text that says nothing; None if that is no good token."""
        token = await self._token(text)
        if token is None or self._as_far_as(token) is None:
            return None
        login, now = secrets.token_urlsafe(RANDOM_BYTES), self._clock()
        await self._store.access.add_login(digest_of(login), token.id, now + LOGIN_LENGTH, now)
        return login

    async def permissions_of_login(self, login: str) -> Allowed | None:
        """What a login allows: as much as its token, and no longer."""
        return self._as_far_as(await self._store.access.token_of_login(digest_of(login), self._clock()))

    async def log_out(self, login: str) -> None:
        """End a login."""
        await self._store.access.end_login(digest_of(login))

    async def _token(self, text: str) -> Token | None:
        if not text.startswith(PREFIX) or len(text) > LONGEST:
            return None
        return await self._store.access.token_of(digest_of(text))

    def _as_far_as(self, token: Token | None) -> Allowed | None:
        """What a token allows, if it is good."""
        if token is None or token.state(self._clock()) != "good":
            return None
        sources = frozenset(token.sources) if token.sources else None
        return Allowed(who=f"token {token.id}", scope=token.scope, sources=sources)

    async def begin_answer(self, caller: str, name: str, asked: str) -> KeptAnswer | Turn:
        """What was answered to a request with this name, or the turn to answer it."""
        return await begin(self._store, self._clock, caller, name, asked)
