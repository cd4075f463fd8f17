"""What the store remembers of webhooks: what came, what it asks for, and what is to be sent."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.hooks import Wish
from afresh.core.model import SourceId
from afresh.core.outbox import Letter, LetterState


class Inbox(Protocol):
    """Messages that came, and what they wish to be looked at."""

    async def take_delivery(
        self, hook: str, delivery: str, wishes: Sequence[tuple[SourceId, str]], now: datetime
    ) -> bool:
        """Take a message once, with what it wishes for; False if it came before."""
        ...

    async def wishes(self, limit: int = 5_000) -> Sequence[Wish]: ...

    async def fulfil(self, wishes: Sequence[Wish]) -> None:
        """Forget wishes, but not those that came again meanwhile."""
        ...


class Outbox(Protocol):
    """Messages that are to be sent; the transaction that ends a run writes them."""

    async def letters(self, *, state: LetterState | None = None, limit: int = 100) -> Sequence[Letter]:
        """Messages, newest first."""
        ...

    async def letters_due(self, now: datetime, limit: int = 100) -> Sequence[Letter]: ...

    async def take_letter(self, letter: Letter, until: datetime) -> bool:
        """Be the one who sends it; False if another is, or it has gone."""
        ...

    async def settle_letter(
        self, letter: Letter, state: LetterState, now: datetime, *, again: datetime | None, error: str | None
    ) -> None:
        """Note how a try went, unless another has begun since."""
        ...

    async def count_letters(self) -> Mapping[str, int]:
        """How many there are, by state."""
        ...
