"""Loopback servers that answer by script, down to the raw bytes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from tests.fakes.wire import answer, next_request

from afresh.model.fetch import Fetched, Gone, Validators
from afresh.sources.web.guard import AddressPolicy
from afresh.sources.web.http import HttpFetcher, HttpOptions
from afresh.testing import RecordedRequest

__all__ = ["Names", "NoFiles", "Raw", "RecordedRequest", "Wire", "answer", "fetching", "html", "redirect", "serving"]
LOOPBACK = ("127.0.0.0/8", "::1")


@dataclass(frozen=True)
class Raw:
    """A script that writes to the socket by itself; the connection is closed when it ends."""

    handler: Callable[[RecordedRequest, asyncio.StreamWriter], Awaitable[None]]


Answer = bytes | Callable[[RecordedRequest], bytes] | Raw


def html(text: str = "<p>hello</p>", **headers: str) -> bytes:
    """A small page."""
    return answer(200, text.encode(), **({"content_type": "text/html; charset=utf-8"} | headers))


def redirect(to: str, status: int = 302, body: bytes = b"") -> bytes:
    """A redirect."""
    return answer(status, body, location=to)


@dataclass
class Wire:
    """A server that answers each path with a script and remembers what it was asked."""

    routes: dict[str, Answer] = field(default_factory=dict)
    asked: list[RecordedRequest] = field(default_factory=list)
    connections: int = 0
    origin: str = ""
    port: int = 0

    def url(self, path: str = "/") -> str:
        return self.origin + path

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = await next_request(reader)
        if asked is None:
            return False
        self.asked.append(asked)
        script = self.routes.get(asked.path, answer(404, b"no such page"))
        if isinstance(script, Raw):
            await script.handler(asked, writer)
            return False
        writer.write(script(asked) if callable(script) else script)
        await writer.drain()
        return True


@asynccontextmanager
async def serving(
    routes: Mapping[str, Answer] | None = None, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Wire]:
    """A running server on a free port of loopback."""
    wire = Wire(dict(routes or {}))
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(wire.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, host, 0, ssl=tls, limit=1024 * 1024)
    wire.port = server.sockets[0].getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    wire.origin = f"{'https' if tls else 'http'}://{name}:{wire.port}"
    try:
        yield wire
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def fetching(**settings: Any) -> AsyncIterator[HttpFetcher]:
    """A fetcher that may reach loopback (`allow`); settings of HttpOptions and of the fetcher by name."""
    of_fetcher = {name: settings.pop(name) for name in ("clock", "refusal", "resolver", "sleep") if name in settings}
    policy = AddressPolicy(settings.pop("allow", LOOPBACK))
    fetcher = HttpFetcher(HttpOptions(policy=policy, **settings), **of_fetcher)
    try:
        yield fetcher
    finally:
        await fetcher.close()


class NoFiles:
    """A reader of robots.txt and sitemaps where there are none."""

    async def read(self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None) -> Fetched:
        return Gone()


async def anywhere(url: str, asked: str) -> None:
    """Lets a redirect lead wherever it wants."""


class Names(AbstractResolver):
    """A resolver that knows only what it is told; a list of answers is used up one by one."""

    def __init__(self, known: Mapping[str, list[str]]) -> None:
        self.known = {name: list(addresses) for name, addresses in known.items()}
        self.calls: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        self.calls.append(host)
        if host not in self.known:
            raise OSError(f"no such name: {host}")
        return [
            ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=0) for ip in self.known[host]
        ]

    async def close(self) -> None:
        pass
