"""The uvicorn server, with limits on slow headers, small chunks and connections per peer."""

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from afresh.config.server import AccessSettings
from afresh.errors import UsageError
from afresh.server.app import stop
from afresh.server.asgi import OPEN, RequestRefused, refuse
from afresh.server.request_checks import caller, is_loopback

MAX_HEAD_BYTES = 65_536
IDLE_SECONDS = 5  # of a connection between two requests
LINGER_SECONDS = 1.0  # time for a client to read a response that was sent before the end of the request body
MAX_SMALL_PIECES = 1_000  # of one body; parsing a small piece costs as much as parsing a large one
SMALL_PIECE_BYTES = 64  # on average
BACKLOG = 512
SHUTDOWN_SECONDS = 5  # to finish responses


class PeerConnections:
    """Counts the connections of each peer, and those that have not sent a request yet.

    If a peer has too many connections, its oldest connection without a request is closed, so that new ones are
    answered. From this machine, only connections without a request count: a reverse proxy here serves many clients.
    """

    def __init__(self, max_connections: int) -> None:
        self._max_connections = max_connections
        self._open: Counter[str] = Counter()
        self._peers: dict[Hashable, str] = {}
        self._silent: dict[str, dict[Hashable, Callable[[], object]]] = {}

    def enter(self, address: str, connection: Hashable, close: Callable[[], object]) -> bool:
        """Register a connection; if its peer has too many, `close` its oldest without a request, or return False."""
        peer = caller(address)
        silent = self._silent.setdefault(peer, {})
        if (len(silent) if is_loopback(address) else self._open[peer]) >= self._max_connections:
            if not silent:
                return False
            oldest, end = next(iter(silent.items()))
            self.leave(oldest)
            end()
            silent = self._silent.setdefault(peer, {})
        self._peers[connection] = peer
        self._open[peer] += 1
        silent[connection] = close
        return True

    def mark_active(self, connection: Hashable) -> None:
        if peer := self._peers.get(connection):
            self._silent.get(peer, {}).pop(connection, None)

    def leave(self, connection: Hashable) -> None:
        if (peer := self._peers.pop(connection, None)) is None:
            return
        self._open[peer] -= 1
        self._silent[peer].pop(connection, None)
        if self._open[peer] <= 0:
            del self._open[peer], self._silent[peer]


def server_limits(settings: AccessSettings) -> dict[str, Any]:
    """Return arguments for `uvicorn.Config` that set the limits, and ignore client addresses in headers."""

    class Protocol(BoundedProtocol):
        header_seconds = settings.header_seconds
        max_connections = settings.max_connections
        peers = PeerConnections(settings.connections_per_peer)

    return {
        "http": Protocol,
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": IDLE_SECONDS,
        "h11_max_incomplete_event_size": MAX_HEAD_BYTES,
    }


class BoundedConnection(h11.Connection):
    """An h11 parser that refuses request bodies that arrive in many small pieces."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self._pieces = self._bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > MAX_SMALL_PIECES and self._bytes < self._pieces * SMALL_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body has too many small pieces")
        return event


class BoundedProtocol(H11Protocol):
    """A connection with a header timeout and a limit per peer; an answer before the end of a request closes it."""

    header_seconds = 10.0
    max_connections = 1_000
    peers: PeerConnections
    _header_timer: asyncio.TimerHandle | None = None  # closes the connection if the headers take too long
    _answered_early = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = BoundedConnection()
        self._application: Any = self.app
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it if there are too many connections; always answer `/health`."""
        if len(self.connections) <= self.max_connections or scope["path"] == OPEN:
            await self._application(scope, receive, send)
        else:
            why = "Too many connections (access.max_connections). Try again later."
            await refuse(send, RequestRefused(503, why, retry_after="5", connection="close"))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.peers.enter(self.client[0] if self.client else "", self, transport.abort):
            self._watch()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; stop the header timeout after complete headers, start it with the next request."""
        if self._answered_early:
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Close the connection if the response was sent before the end of the request body."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._answered_early = True
            self.transport.write_eof()
            self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def shutdown(self) -> None:
        """Finish a response at shutdown, but do not wait for the rest of a request body."""
        if self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.SEND_RESPONSE:
            self.transport.close()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Send a 400 for an invalid request, or close the connection if a response has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self.peers.leave(self)
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
            self.peers.mark_active(self)
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class Server(uvicorn.Server):
    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self.app = app
        self.socket = open_socket(host, port)
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                date_header=True,
                backlog=BACKLOG,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                lifespan="on",
                **server_limits(app.state.config.access),
            )
        )

    @property
    def host(self) -> str:
        return str(self.socket.getsockname()[0])

    @property
    def url(self) -> str:
        host, port = self.socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def work(self) -> None:
        try:
            await self.serve([self.socket])
        finally:
            self.socket.close()

    def leave(self) -> None:
        self.should_exit = True
        stop(self.app)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers, because the caller handles signals."""
        yield


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise UsageError if the address or the port cannot be used."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host: {host!r} is not an address of this machine ({error})") from None
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(place)
        made.listen(BACKLOG)  # connections before the start wait in the backlog
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} is in use; choose another with --port, or 0 for any free port") from None
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    made.set_inheritable(False)
    return made
