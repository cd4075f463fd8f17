"""A scripted web site on loopback, served from a thread of its own."""

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin

from afresh.testing.answers import Answer, notice, unless_known
from afresh.testing.asked import Asked, RequestLog
from afresh.testing.script import SiteScript
from afresh.testing.server import HOST, LoopbackServer

if TYPE_CHECKING:
    from aiohttp import web


class TinySite(SiteScript):
    """A web site that follows a script; every change takes effect at once and may come from any thread."""

    def __init__(self, *, port: int = 0, etags: bool = True) -> None:
        super().__init__(etags=etags)
        self.requests = RequestLog()
        self._port = port
        self._server: LoopbackServer | None = None

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

    # ---- its life ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to serve; returns when connections are accepted."""
        if self._server is None:
            server = LoopbackServer(self._respond, self._port)
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

    # ---- answering --------------------------------------------------------------------------

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

    async def _wait(self, path: str) -> None:
        gate, seconds = self.delays(path)
        if gate is not None:
            await gate.passed()
        if seconds:
            await asyncio.sleep(seconds)

    def _answer(self, request: "web.BaseRequest") -> Answer:
        if request.method not in ("GET", "HEAD"):
            return notice(405, {"Allow": "GET, HEAD"})
        headers = request.headers
        found = self.find(request.path_qs, self.url)
        return unless_known(found, headers.get("If-None-Match"), headers.get("If-Modified-Since"))

    def _running(self) -> LoopbackServer:
        if self._server is None:
            raise RuntimeError("the site is not started: use `with TinySite() as site:` or call start()")
        return self._server


def _asked(request: "web.BaseRequest", status: int | None, at: float) -> Asked:
    return Asked(
        method=request.method,
        path=request.path_qs,
        status=status,
        if_none_match=request.headers.get("If-None-Match"),
        if_modified_since=request.headers.get("If-Modified-Since"),
        user_agent=request.headers.get("User-Agent"),
        at=at,
    )
