"""The only network access of a browser: a local proxy that connects where the address policy allows it."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from afresh.sources.web.guard import AddressPolicy, AddressRefused, asked_host

_HOST = "127.0.0.1"
_LARGEST_HEAD = 64 * 1024
_PIECE = 64 * 1024
_SINGLE = frozenset({b"connection", b"proxy-connection", b"keep-alive"})  # hop-by-hop headers
_MOST_TOLD = 5  # blocked hosts that are reported per page

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class ProxyStats:
    """The traffic of one page."""

    limit: int
    passed: int = 0  # bytes towards the browser
    barred: dict[str, str] = field(default_factory=dict)  # host: what kind of address it has

    @property
    def spent(self) -> bool:
        """Return whether the page has used up its bytes."""
        return self.passed > self.limit


class ConnectFailed(Exception):
    """No connection could be made."""


class BrowserProxy:
    """Serves one browser context, which renders one page at a time; nothing passes before `admit`."""

    def __init__(self, policy: AddressPolicy, *, connect_seconds: float = 10.0) -> None:
        self._policy = policy
        self._connect_seconds = connect_seconds
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._toll: ProxyStats | None = None

    @property
    def is_open(self) -> bool:
        """Return whether it listens."""
        return self._server is not None

    @property
    def address(self) -> str:
        """Return the URL of the proxy."""
        if self._server is None:
            raise RuntimeError("the proxy is not open")
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def open(self) -> None:
        """Start listening."""
        self._server = await asyncio.start_server(self._accept, _HOST, 0, limit=_LARGEST_HEAD)

    def admit(self, limit: int) -> ProxyStats:
        """Let the next page through, up to `limit` bytes."""
        self._toll = ProxyStats(limit)
        return self._toll

    def hang_up(self) -> None:
        """Close every connection and let nothing through until the next page."""
        self._toll = None
        for talk in self._talks:
            talk.cancel()

    async def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        self.hang_up()
        if server is not None:
            server.close()
        if self._talks:
            await asyncio.wait(self._talks, timeout=2)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(self._talk((reader, writer)))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, client: Streams) -> None:
        try:
            with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                toll = self._toll
                if toll and not toll.spent and is_own(client[1].get_extra_info("peername")):
                    await self._serve(client, toll)
        except asyncio.CancelledError:  # by `hang_up`; nothing waits for this task
            pass
        finally:
            client[1].close()

    async def _serve(self, client: Streams, toll: ProxyStats) -> None:
        head = await client[0].readuntil(b"\r\n\r\n")
        first, *headers = head[:-4].split(b"\r\n")
        method, target, _ = first.decode("latin-1").split(" ", 2)
        tunnel = method == "CONNECT"
        place = urlsplit(f"//{target}" if tunnel else target)
        if not place.hostname or (not tunnel and place.scheme != "http"):
            return
        try:
            port = place.port or (443 if tunnel else 80)
            async with asyncio.timeout(self._connect_seconds):
                upstream = await self._connect(place.hostname, port)
        except AddressRefused as refused:
            if len(toll.barred) < _MOST_TOLD:
                toll.barred.setdefault(place.hostname, refused.kind)
            return  # no response, as a script could take it for one of the host
        except (ConnectFailed, TimeoutError):
            return
        try:
            if tunnel:
                client[1].write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await self._both_ways(client, upstream, toll)
            else:
                path = target[target.index(place.netloc) + len(place.netloc) :].partition("#")[0]
                line = f"{method} {path if path.startswith('/') else '/' + path} HTTP/1.1".encode("latin-1")
                await self._exchange(client, upstream, _single(line, headers), _length(headers), toll)
        finally:
            upstream[1].close()

    async def _connect(self, host: str, port: int) -> Streams:
        """Connect to an address that was checked; the name is not resolved again."""
        asked_host.set(host)
        loop, refused = asyncio.get_running_loop(), None
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConnectFailed from error
        for info in found:
            try:
                sock = self._policy.open_socket(info)  # type: ignore[arg-type]
            except AddressRefused as error:
                refused = refused or error
                continue
            try:
                sock.setblocking(False)
                await loop.sock_connect(sock, info[4])
                return await asyncio.open_connection(sock=sock, limit=_LARGEST_HEAD)
            except BaseException as error:
                sock.close()
                if not isinstance(error, OSError):
                    raise
        raise refused or ConnectFailed()

    async def _exchange(
        self, client: Streams, upstream: Streams, head: bytes, length: int, toll: ProxyStats
    ) -> None:
        """Forward one request and its response; the connection ends, as the next may be for another host."""
        upstream[1].write(head)
        while length > 0:
            piece = await client[0].read(min(_PIECE, length))
            if not piece:
                return
            length -= len(piece)
            upstream[1].write(piece)
            await upstream[1].drain()
        answer = await upstream[0].readuntil(b"\r\n\r\n")
        first, *headers = answer[:-4].split(b"\r\n")
        toll.passed += len(answer)
        client[1].write(_single(first, headers))
        await self._pass(upstream[0], client[1], toll)

    async def _both_ways(self, client: Streams, upstream: Streams, toll: ProxyStats) -> None:
        ways = {
            asyncio.ensure_future(self._pass(upstream[0], client[1], toll)),
            asyncio.ensure_future(self._pass(client[0], upstream[1], None)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, toll: ProxyStats | None
    ) -> None:
        """Forward data until it ends or the page has used up its bytes; each page is counted separately."""
        while piece := await reader.read(_PIECE):
            if toll is not None:
                toll = self._toll  # a connection may serve the next page too
                if toll is None:
                    return
                toll.passed += len(piece)
                if toll.spent:
                    return
            writer.write(piece)
            await writer.drain()


def _single(first: bytes, headers: list[bytes]) -> bytes:
    """Build a head for a connection that carries nothing else."""
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in _SINGLE]
    return b"\r\n".join((first, *kept, b"Connection: close", b"", b""))


def _length(headers: list[bytes]) -> int:
    """Return the length of a request body; browsers always send it."""
    named = {name.strip().lower(): value for name, _, value in (line.partition(b":") for line in headers)}
    if b"transfer-encoding" in named:
        raise ValueError("a body of unknown length")
    return int(named.get(b"content-length", b"0"))


def is_own(peer: tuple[str, int], table: Callable[[], str] = Path("/proc/net/tcp").read_text) -> bool:
    """Return whether a local connection comes from this user, as far as the system shows."""
    try:
        rows = table()
    except OSError:  # not Linux: any local user may reach what the policy allows anyway
        return True
    local = f": {int.from_bytes(socket.inet_aton(peer[0]), 'little'):08X}:{peer[1]:04X} "
    at = rows.find(local)
    return at >= 0 and int(rows[at:].split(None, 8)[7]) == os.getuid()
