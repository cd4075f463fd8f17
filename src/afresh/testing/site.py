"""A scripted site that can be started, taken down and closed; what it says is for others to decide."""

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

from afresh.testing.asked import RequestLog
from afresh.testing.script import SiteScript
from afresh.testing.server import HOST, Listen, LoopbackServer


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
