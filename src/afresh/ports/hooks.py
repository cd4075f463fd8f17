"""What the store remembers of webhooks: what came, what it asks for, and what is to be sent."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.hooks import Wish
from afresh.core.model import SourceId


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
