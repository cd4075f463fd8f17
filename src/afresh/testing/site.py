"""A scripted web site on loopback, and the log of what it was asked."""

import asyncio
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urljoin

from afresh.crawl.plausibility import PROBE
from afresh.testing.script import Answer, SiteScript, notice, unless_known

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
T = TypeVar("T")
PATIENCE = 0.01  # seconds for answers under way when it hangs up; aiohttp takes 0 as "for ever"

HangUp = Callable[[], Awaitable[None]]
Listen = Callable[[socket.socket], Awaitable[HangUp]]  # begins to serve on a bound socket


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that reached the site.

    `status` is None when the site hung up before its answer, and always for a raw answer of HostileSite.
    """

    method: str
    path: str  # as sent, with its query
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    visit: int = 1  # the number of this request for its path; only HostileSite counts
    body: bytes = b""  # only raw servers read it
    at: float = 0.0  # time.monotonic() when it came in

    @property
    def if_none_match(self) -> str | None:
        """The ETag it named."""
        return self.headers.get("if-none-match")

    @property
    def if_modified_since(self) -> str | None:
        """The date it named."""
        return self.headers.get("if-modified-since")

    @property
    def user_agent(self) -> str | None:
        """Who it said it was."""
        return self.headers.get("user-agent")

    @property
    def conditional(self) -> bool:
        """Whether it carried a validator."""
        return bool(self.if_none_match or self.if_modified_since)


class RequestLog:
    """The requests in the order they were added, probes apart; safe to read from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: list[Asked] = []
        self.probes: list[Asked] = []  # questions for an address that cannot exist

    def add(self, asked: Asked) -> None:
        """Record one request."""
        with self._lock:
            (self.probes if PROBE in asked.path else self._asked).append(asked)

    def clear(self) -> None:
        """Forget all requests so far."""
        with self._lock:
            self._asked.clear()
            self.probes.clear()

    def count(self, path: str | None = None, *, status: int | None = None) -> int:
        """How many requests there were, for one path or with one status."""
        return sum(1 for each in self if path in (None, each.path) and status in (None, each.status))

    def paths(self) -> list[str]:
        """The paths in order, with repeats."""
        return [each.path for each in self]

    def __iter__(self) -> Iterator[Asked]:
        with self._lock:
            return iter(self._asked.copy())

    def __len__(self) -> int:
        with self._lock:
            return len(self._asked)

    def __getitem__(self, index: int) -> Asked:
        with self._lock:
            return self._asked[index]


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


class ServedSite(SiteScript, ABC):
    """A scripted site on loopback, served from a thread of its own by what `_listening` returns."""

    def __init__(self, *, port: int = 0, etags: bool = True) -> None:
        super().__init__(etags=etags)
        self.requests = RequestLog()
        self._port = port
        self._server: LoopbackServer | None = None

    @abstractmethod
    def _listening(self) -> Listen:
        """How it answers on a socket."""

    def start(self) -> Self:
        """Begin to serve; returns when connections are accepted."""
        if self._server is None:
            server = LoopbackServer(self._listening(), self._port)
            server.start()
            self._server = server
        return self

    def close(self) -> None:
        """Stop serving; requests that still wait at a gate are let go."""
        server, self._server = self._server, None
        for gate in list(self._gates.values()):
            gate.release()
        if server is not None:
            server.close()

    def down(self) -> None:
        """Hang up on everyone and refuse connections."""
        self._running().down()

    def up(self) -> None:
        """Accept connections again, at the same address."""
        self._running().up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._running().port

    @property
    def url(self) -> str:
        """The root, with a slash at the end."""
        return f"http://{HOST}:{self.port}/"

    def at(self, path: str) -> str:
        """The address of a path."""
        return urljoin(self.url, path)

    async def _wait(self, path: str) -> None:
        gate, seconds = self.delays(path)
        if gate is not None:
            await gate.passed()
        if seconds:
            await asyncio.sleep(seconds)

    def _running(self) -> LoopbackServer:
        if self._server is None:
            raise RuntimeError(f"the site is not started: use `with {type(self).__name__}() as site:`")
        return self._server


class TinySite(ServedSite):
    """A web site that follows a script; every change takes effect at once and may come from any thread."""

    @classmethod
    def docs(cls, *, port: int = 0, etags: bool = True) -> Self:
        """The documentation of Harbor, a product that does not exist: about thirty pages that look real."""
        from afresh.testing.docs import ROBOTS, UNLISTED, pages

        site = cls(port=port, etags=etags)
        for path, html in pages().items():
            site.put(path, html, listed=path not in UNLISTED)
        site.robots(ROBOTS)
        site.sitemap(True)
        return site

    def _listening(self) -> Listen:
        async def listen(listener: socket.socket) -> HangUp:
            from aiohttp import web

            runner = web.ServerRunner(web.Server(self._respond, access_log=None), shutdown_timeout=PATIENCE)
            await runner.setup()
            await web.SockSite(runner, listener, backlog=128).start()
            return runner.cleanup

        return listen

    async def _respond(self, request: "web.BaseRequest") -> "web.StreamResponse":
        from aiohttp import web

        arrived, status = time.monotonic(), None
        try:
            await self._wait(request.path_qs)
            answer = self._answer(request)
            status = answer.status
            return web.Response(status=status, headers=answer.headers, body=answer.body)
        finally:
            self.requests.add(_asked(request, status, arrived))

    def _answer(self, request: "web.BaseRequest") -> Answer:
        if request.method not in ("GET", "HEAD"):
            return notice(405, {"Allow": "GET, HEAD"})
        headers = request.headers
        found = self.find(request.path_qs, self.url)
        return unless_known(found, headers.get("If-None-Match"), headers.get("If-Modified-Since"))


def _asked(request: "web.BaseRequest", status: int | None, at: float) -> Asked:
    return Asked(
        method=request.method,
        path=request.path_qs,
        status=status,
        headers={name.lower(): value for name, value in request.headers.items()},
        at=at,
    )
