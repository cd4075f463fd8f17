"""What the engine asks of a store about hosts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.pictures import HostState


class HostRecords(Protocol):
    """How hosts are treated by all who work on the store."""

    async def pause_host(self, domain: str, until: datetime) -> None: ...
    async def host_states(self, domains: Sequence[str]) -> Sequence[HostState]: ...
