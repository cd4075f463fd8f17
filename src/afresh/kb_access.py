"""The use cases around access: making, listing and revoking tokens, knowing one, and logins with one."""

import secrets
from collections.abc import Sequence
from copy import copy
from datetime import timedelta
from typing import Self, cast

from afresh.core.access import (
    EVERYTHING,
    LONGEST,
    PREFIX,
    Allowed,
    MadeToken,
    Scope,
    Token,
    digest_of,
)
from afresh.core.errors import UsageError
from afresh.core.masking import one_line
from afresh.engine.bounded import BoundedTools, ReadersTools
from afresh.engine.tools import Tools
from afresh.engine.which import exact_sources
from afresh.ports import Clock
from afresh.store.scoped import ScopedStore
from afresh.store.store import Store

RANDOM_BYTES = 32
LONGEST_NAME = 100
LOGIN_LENGTH = timedelta(hours=12)


class Admission:
    """Who may ask."""

    _store: Store
    _tools: Tools
    _clock: Clock
    allowed: Allowed = EVERYTHING

    def seen_by(self, allowed: Allowed) -> Self:
        """The same for who may see just some sources: others are not there, what concerns all is closed.

        Who may only read has no other pages of the web fetched.
        """
        if allowed.everywhere and allowed.may_write:
            return self
        part = copy(self)
        part.allowed = allowed
        if allowed.everywhere:
            part._tools = cast("Tools", ReadersTools(self._tools, self._store))
        else:
            store = ScopedStore(self._store, allowed)
            part._store = store
            part._tools = cast("Tools", BoundedTools(self._tools, store))
        return part

    async def create_token(
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

    async def tokens(self) -> list[Token]:
        """All tokens, in the order in which they were made."""
        return list(await self._store.access.tokens())

    async def revoke_token(self, token: int) -> None:
        """Make a token useless at once."""
        if not await self._store.access.revoke_token(token, self._clock()):
            raise UsageError(f"there is no token {token}; `afresh token list` shows them")

    async def has_tokens(self) -> bool:
        """Whether a token was ever made: from then on one is asked for."""
        return await self._store.access.has_tokens()

    async def admitted(self, text: str) -> Allowed | None:
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

    async def logged_in(self, login: str) -> Allowed | None:
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
