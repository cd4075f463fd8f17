"""A loopback server in a thread of its own, which can stop listening and come back on its port."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

HOST = "127.0.0.1"
T = TypeVar("T")

HangUp = Callable[[], Awaitable[None]]
Listen = Callable[[socket.socket], Awaitable[HangUp]]  # begins to serve on a bound socket


class LoopbackServer:
    """Serves on 127.0.0.1 from its own thread and event loop; `listen` says what."""

    def __init__(self, listen: Listen, port: int = 0) -> None:
        self.port = port
        self._listen = listen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tinysite", daemon=True)
        self._hang_up: HangUp | None = None
        self._place: socket.socket | None = None  # holds the port while nobody listens

    def start(self) -> None:
        """Listen; returns when connections are accepted."""
        self._thread.start()
        try:
            self.up()
        except OSError:
            self._end()
            raise

    def up(self) -> None:
        """Listen again on the same port."""
        self._call(self._open())

    def down(self) -> None:
        """Hang up on everyone and refuse connections until `up`."""
        self._call(self._shut())
        self._place = _bound(self.port)

    def close(self) -> None:
        """Stop for good."""
        self._call(self._shut())
        self._end()

    def _call(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _open(self) -> None:
        if self._hang_up is not None:
            return
        self._let_go()
        listener = _bound(self.port)
        self._hang_up = await self._listen(listener)
        self.port = listener.getsockname()[1]

    async def _shut(self) -> None:
        hang_up, self._hang_up = self._hang_up, None
        if hang_up is not None:
            await hang_up()
        self._let_go()

    def _let_go(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            with suppress(OSError):
                place.close()


def _bound(port: int) -> socket.socket:
    """A bound socket; without `listen` it refuses connections, yet nobody else gets the port."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        raise
    return sock
