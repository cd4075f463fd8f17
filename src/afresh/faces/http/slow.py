"""What uvicorn is told, and what it lacks: an end to requests whose head never comes."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from afresh.config.access import AccessSettings

LARGEST_HEAD = 65_536
BETWEEN_SECONDS = 5  # that a connection may be idle between two requests


def server_limits(settings: AccessSettings) -> dict[str, Any]:
    """Arguments for `uvicorn.Config`; who asks is told by the connection, not by what headers claim."""

    class Prompt(HeadInTime):
        seconds = settings.header_seconds

    return {
        "http": Prompt,
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "limit_concurrency": settings.max_connections,
        "timeout_keep_alive": BETWEEN_SECONDS,
        "h11_max_incomplete_event_size": LARGEST_HEAD,
    }


class HeadInTime(H11Protocol):
    """Closes a connection on which the head of a request takes too long."""

    seconds = 10.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The time for the first head begins."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """The time ends with a whole head, and begins with the first piece of another one."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
