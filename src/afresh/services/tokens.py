"""Create, list, revoke and verify tokens, and log in with them."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from afresh.access.idempotency import RequestClaim, StoredResponse, begin
from afresh.access.permissions import (
    MAX_TOKEN_CHARS,
    PREFIX,
    AccessToken,
    CreatedToken,
    Permissions,
    TokenScope,
    digest_of,
)
from afresh.dataclass import fields
from afresh.errors import UsageError
from afresh.services.context import Service
from afresh.services.resolve import exact_sources
from afresh.text.redact import one_line

RANDOM_BYTES = 32
MAX_NAME_CHARS = 100
LOGIN_LENGTH = timedelta(hours=12)


class TokenService(Service):
    async def create(
        self, scope: TokenScope, *, sources: Sequence[str] = (), expires: timedelta | None = None, name: str = ""
    ) -> CreatedToken:
        """Create a token and return it with its text, which is not stored."""
        for label in sources:
            await exact_sources(self._store, label)
        if len(name) > MAX_NAME_CHARS:
            raise UsageError(f"a name has at most {MAX_NAME_CHARS} characters")
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
        names = [each.name for each in fields(CreatedToken) if each.name != "token"]
        return CreatedToken(token=text, **{name: getattr(made, name) for name in names})

    async def all(self) -> list[AccessToken]:
        return list(await self._store.access.tokens())

    async def revoke(self, token: int) -> None:
        if not await self._store.access.revoke_token(token, self._clock()):
            raise UsageError(f"there is no token {token}; `afresh token list` shows them")

    async def exist(self) -> bool:
        """Return whether a token was ever created, so that requests need one."""
        return await self._store.access.has_tokens()

    async def permissions_of(self, text: str) -> Permissions | None:
        """Return the permissions of a token; None if it is unknown, revoked or expired."""
        return self._permissions_if_valid(await self._token(text))

    async def log_in(self, text: str) -> str | None:
        """Create a login with a token and return its random id; None if the token is not valid."""
        token = await self._token(text)
        if token is None or self._permissions_if_valid(token) is None:
            return None
        login, now = secrets.token_urlsafe(RANDOM_BYTES), self._clock()
        await self._store.access.add_login(digest_of(login), token.id, now + LOGIN_LENGTH, now)
        return login

    async def permissions_of_login(self, login: str) -> Permissions | None:
        """Return the permissions of a login: those of its token while the token is valid."""
        return self._permissions_if_valid(await self._store.access.token_of_login(digest_of(login), self._clock()))

    async def log_out(self, login: str) -> None:
        await self._store.access.end_login(digest_of(login))

    async def _token(self, text: str) -> AccessToken | None:
        if not text.startswith(PREFIX) or len(text) > MAX_TOKEN_CHARS:
            return None
        return await self._store.access.token_of(digest_of(text))

    def _permissions_if_valid(self, token: AccessToken | None) -> Permissions | None:
        if token is None or token.state(self._clock()) != "good":
            return None
        sources = frozenset(token.sources) if token.sources else None
        return Permissions(caller=f"token {token.id}", scope=token.scope, sources=sources)

    async def begin_answer(self, caller: str, key: str, asked: str) -> StoredResponse | RequestClaim:
        """Return what is stored for an idempotency key; if nothing is, a claim to process the request.

        `asked` is a hash of the request, which is stored with the key.
        """
        return await begin(self._store, self._clock, caller, key, asked)
