"""Tokens in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.access import Scope, Token
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
        for digest, each in self.tables.tokens.items():
            if each.id == token:
                self.tables.tokens[digest] = replace(each, revoked_at=each.revoked_at or now)
                return True
        return False
