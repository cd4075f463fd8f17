"""What uvicorn lacks: bounds on heads that never come, bodies in crumbs, and connections of one peer."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from afresh.config.access import AccessSettings
from afresh.server.asgi import OPEN, Receive, Refused, Scope, Send, refuse
from afresh.server.peers import Peers

LARGEST_HEAD = 65_536
BETWEEN_SECONDS = 5  # that a connection may be idle between two requests
LINGER_SECONDS = 1.0  # that a caller has to read an answer that came before the end of the body
MAX_SMALL_PIECES = 1_000  # of one body: taking each apart costs as much as a large one
SMALL_PIECE_BYTES = 64  # on average


def server_limits(settings: AccessSettings) -> dict[str, Any]:
    """Arguments for `uvicorn.Config`; who asks is told by the connection, not by what headers claim."""

    class Prompt(BoundedProtocol):
        seconds = settings.header_seconds
        max_connections = settings.max_connections
        peers = Peers(settings.connections_per_peer)

    return {
        "http": Prompt,
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": BETWEEN_SECONDS,
        "h11_max_incomplete_event_size": LARGEST_HEAD,
    }


class BoundedConnection(h11.Connection):
    """Takes requests apart, and refuses bodies that come in crumbs."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, LARGEST_HEAD)
        self._pieces = self._bytes = 0

    def next_event(self) -> Any:
        """The next part of a request; h11.RemoteProtocolError for one that is not taken."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > MAX_SMALL_PIECES and self._bytes < self._pieces * SMALL_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body comes in too many small pieces")
        return event


class BoundedProtocol(H11Protocol):
    """One connection: closed where a head takes too long or a body is not wanted, and bounded by peer."""

    seconds = 10.0
    max_connections = 1_000
    peers: Peers
    _late: asyncio.TimerHandle | None = None
    _answered_early = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = BoundedConnection()
        self._application: Any = self.app
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer where there is room; `/health` is always answered."""
        if len(self.connections) <= self.max_connections or scope["path"] == OPEN:
            await self._application(scope, receive, send)
        else:
            busy = "too many connections at a time (access.max_connections): come again later"
            await refuse(send, Refused(503, busy, retry_after="5", connection="close"))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The time for the first head begins."""
        super().connection_made(transport)
        if self.peers.enter(self.client[0] if self.client else "", self, transport.abort):
            self._watch()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """The time ends with a whole head, and begins with the first piece of another one."""
        if self._answered_early:
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """An answer that came before the end of its request ends the connection: nobody wants the rest."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._answered_early = True
            self.transport.write_eof()
            self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def shutdown(self) -> None:
        """Wait for an answer under way at the end of the server, and not for the rest of a request."""
        if self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.SEND_RESPONSE:
            self.transport.close()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Say that a request is none; in the middle of an answer there is nothing to say."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for."""
        self._stop()
        self.peers.leave(self)
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
            self.peers.asks(self)
        elif self._late is None:
            self._late = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
