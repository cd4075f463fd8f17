"""Serving the application at an address until told to stop."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from afresh.errors import UsageError
from afresh.server.app import stop
from afresh.server.slow_headers import server_limits

BACKLOG = 512
GRACE = 5  # seconds that answers under way are given at the end


class Server(uvicorn.Server):
    """One application at one address; who started it says when it ends."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self.app = app
        self.socket = listening(host, port)
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                date_header=True,
                backlog=BACKLOG,
                timeout_graceful_shutdown=GRACE,
                lifespan="on",
                **server_limits(app.state.config.access),
            )
        )

    @property
    def host(self) -> str:
        """The address it listens at."""
        return str(self.socket.getsockname()[0])

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def work(self) -> None:
        """Answer until `leave`."""
        try:
            await self.serve([self.socket])
        finally:
            self.socket.close()

    def leave(self) -> None:
        """Take no more requests, finish those under way, and end."""
        self.should_exit = True
        stop(self.app)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are heard by who started us."""
        yield


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; UsageError says why there can be none."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host: {host!r} is no address of this machine ({error})") from None
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(place)
        made.listen(BACKLOG)  # who connects before we answer waits
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} is taken: choose another with --port, or 0 for any that is free"
            ) from None
        raise UsageError(f"{host}:{port} cannot be listened at: {error.strerror}") from None
    made.set_inheritable(False)
    return made
