"""A scripted web site on loopback, served from a thread of its own."""

import socket
import time
from typing import TYPE_CHECKING, Self

from afresh.testing.answers import Answer, notice, unless_known
from afresh.testing.asked import Asked
from afresh.testing.server import HangUp, Listen
from afresh.testing.site import ServedSite

if TYPE_CHECKING:
    from aiohttp import web

PATIENCE = 0.01  # seconds for answers under way when it hangs up; aiohttp takes 0 as "for ever"


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
