"""Tokens in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.access import MOST_LOGINS, Scope, Token
from afresh.testing.memory.tables import Tables


class MemoryTokens:
    """Reading and writing tokens."""

    tables: Tables

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
        number = next(self.tables.numbers)
        self.tables.tokens[digest] = Token(
            id=number, name=name, scope=scope, sources=tuple(sources), created_at=now, expires_at=expires_at
        )
        return self.tables.tokens[digest]

    async def tokens(self) -> list[Token]:
        """All that were ever made, in that order."""
        return sorted(self.tables.tokens.values(), key=lambda token: token.id)

    async def token_of(self, digest: str) -> Token | None:
        """The token with this digest, whatever became of it."""
        return self.tables.tokens.get(digest)

    async def has_tokens(self) -> bool:
        """Whether one was ever made."""
        return bool(self.tables.tokens)

    async def revoke_token(self, token: int, now: datetime) -> bool:
        """Make a token useless from now on."""
        self._keep_logins(lambda login: login[0] != token)
        for digest, each in self.tables.tokens.items():
            if each.id == token:
                self.tables.tokens[digest] = replace(each, revoked_at=each.revoked_at or now)
                return True
        return False

    async def add_login(self, digest: str, token: int, expires_at: datetime, now: datetime) -> None:
        """Keep a login; those that expired, and the oldest of many with one token, go."""
        self.tables.logins[digest] = (token, expires_at)
        self._keep_logins(lambda login: login[1] > now)
        mine = sorted(each for each, (of, _) in self.tables.logins.items() if of == token)
        mine.sort(key=lambda each: self.tables.logins[each][1], reverse=True)
        for each in mine[MOST_LOGINS:]:
            del self.tables.logins[each]

    async def token_of_login(self, digest: str, now: datetime) -> Token | None:
        """The token that a login stands for."""
        token, until = self.tables.logins.get(digest, (0, now))
        return next((each for each in await self.tokens() if each.id == token and until > now), None)

    async def end_login(self, digest: str) -> None:
        """Forget a login."""
        self.tables.logins.pop(digest, None)

    def _keep_logins(self, stays: Callable[[tuple[int, datetime]], bool]) -> None:
        kept = {digest: login for digest, login in self.tables.logins.items() if stays(login)}
        self.tables.logins.clear()
        self.tables.logins.update(kept)
