"""What the store remembers of tokens and logins."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.access import Scope, Token


class Tokens(Protocol):
    """Tokens by what is kept of them; their text is never handed over."""

    async def add_token(
        self,
        *,
        name: str,
        digest: str,
        scope: Scope,
        sources: Sequence[str],
        expires_at: datetime | None,
        now: datetime,
    ) -> Token: ...

    async def tokens(self) -> Sequence[Token]:
        """All that were ever made, in that order."""
        ...

    async def token_of(self, digest: str) -> Token | None:
        """The token with this digest, whatever became of it."""
        ...

    async def has_tokens(self) -> bool:
        """Whether one was ever made."""
        ...

    async def revoke_token(self, token: int, now: datetime) -> bool:
        """Make a token useless from now on and end its logins; whether there is one of that number."""
        ...

    async def add_login(self, digest: str, token: int, expires_at: datetime, now: datetime) -> None:
        """Keep a login; those that expired, and the oldest of many with one token, go."""
        ...

    async def token_of_login(self, digest: str, now: datetime) -> Token | None:
        """The token that a login stands for, whatever became of it; None: there is no such login."""
        ...

    async def end_login(self, digest: str) -> None:
        """Forget a login."""
        ...
