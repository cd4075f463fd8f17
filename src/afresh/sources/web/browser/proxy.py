"""Run the local proxy through which a browser gets network access; it enforces the address policy."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from afresh.dataclass import dataclass, field
from afresh.sources.web.guard import AddressPolicy, AddressRefused, asked_host

_HOST = "127.0.0.1"
_MAX_HEAD_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
_SINGLE = frozenset({b"connection", b"proxy-connection", b"keep-alive"})  # headers that are not forwarded
_MAX_BARRED_HOSTS = 5  # blocked hosts that are reported per page

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class ProxyStats:
    limit: int
    passed: int = 0  # bytes sent to the browser
    barred: dict[str, str] = field(default_factory=dict)  # blocked host → kind of its IP address

    @property
    def spent(self) -> bool:
        return self.passed > self.limit


class BrowserProxy:
    """The proxy of one browser context, which renders one page at a time; blocks everything until `admit` is called."""

    def __init__(self, policy: AddressPolicy, *, connect_seconds: float = 10.0) -> None:
        self._policy = policy
        self._connect_seconds = connect_seconds
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._stats: ProxyStats | None = None

    @property
    def address(self) -> str:
        if self._server is None:
            raise RuntimeError("the browser proxy was not opened")
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, _HOST, 0, limit=_MAX_HEAD_BYTES)

    def admit(self, limit: int) -> ProxyStats:
        """Allow requests of the next page, up to `limit` bytes; return the object that counts its traffic."""
        self._stats = ProxyStats(limit)
        return self._stats

    def hang_up(self) -> None:
        """Close every connection, and block everything until `admit` is called again."""
        self._stats = None
        for connection in self._connections:
            connection.cancel()

    async def close(self) -> None:
        server, self._server = self._server, None
        self.hang_up()
        if server is not None:
            server.close()
        if self._connections:
            await asyncio.wait(self._connections, timeout=2)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(self._handle((reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _handle(self, client: Streams) -> None:
        try:
            with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                stats = self._stats
                if stats and not stats.spent and is_own(client[1].get_extra_info("peername")):
                    await self._serve(client, stats)
        except asyncio.CancelledError:  # caused by `hang_up`; no caller waits for this task
            pass
        finally:
            client[1].close()

    async def _serve(self, client: Streams, stats: ProxyStats) -> None:
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
            if len(stats.barred) < _MAX_BARRED_HOSTS:
                stats.barred.setdefault(place.hostname, refused.kind)
            return  # without a response, which a script could mistake for one from the host
        try:
            if tunnel:
                client[1].write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await self._tunnel(client, upstream)
            else:
                path = target[target.index(place.netloc) + len(place.netloc) :].partition("#")[0]
                line = f"{method} {path if path.startswith('/') else '/' + path} HTTP/1.1".encode("latin-1")
                await self._exchange(client, upstream, _single(line, headers), _length(headers), stats)
        finally:
            upstream[1].close()

    async def _connect(self, host: str, port: int) -> Streams:
        """Resolve a host, check its IP addresses, and connect to one that is allowed."""
        asked_host.set(host)
        loop, refused = asyncio.get_running_loop(), None
        for info in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                sock = self._policy.open_socket(info)  # type: ignore[arg-type]
            except AddressRefused as error:
                refused = refused or error
                continue
            try:
                sock.setblocking(False)
                await loop.sock_connect(sock, info[4])
                return await asyncio.open_connection(sock=sock, limit=_MAX_HEAD_BYTES)
            except BaseException as error:
                sock.close()
                if not isinstance(error, OSError):
                    raise
        raise refused or ConnectionError(f"no connection to {host}")

    async def _exchange(self, client: Streams, upstream: Streams, head: bytes, length: int, stats: ProxyStats) -> None:
        """Forward one request and its response, then end the connection: the next request may be for another host."""
        upstream[1].write(head)
        while length > 0:
            if not (piece := await client[0].read(min(_PIECE_BYTES, length))):
                return
            length -= len(piece)
            upstream[1].write(piece)
            await upstream[1].drain()
        answer = await upstream[0].readuntil(b"\r\n\r\n")
        first, *headers = answer[:-4].split(b"\r\n")
        stats.passed += len(answer)
        client[1].write(_single(first, headers))
        await self._pass(upstream[0], client[1], is_download=True)

    async def _tunnel(self, client: Streams, upstream: Streams) -> None:
        ways = {
            asyncio.ensure_future(self._pass(upstream[0], client[1], is_download=True)),
            asyncio.ensure_future(self._pass(client[0], upstream[1], is_download=False)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_download: bool) -> None:
        """Forward data until the sender ends it or the current page has used up its limit of bytes."""
        while piece := await reader.read(_PIECE_BYTES):
            if is_download:
                stats = self._stats  # looked up again, because a connection may serve the next page too
                if stats is None:
                    return
                stats.passed += len(piece)
                if stats.spent:
                    return
            writer.write(piece)
            await writer.drain()


def _single(first: bytes, headers: list[bytes]) -> bytes:
    """Return the head of a request with `Connection: close`, so that the connection carries only this one."""
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in _SINGLE]
    return b"\r\n".join((first, *kept, b"Connection: close", b"", b""))


def _length(headers: list[bytes]) -> int:
    """Return the length of a request body, 0 without one; raise ValueError for a chunked body."""
    named = {name.strip().lower(): value for name, _, value in (line.partition(b":") for line in headers)}
    if b"transfer-encoding" in named:
        raise ValueError("chunked request bodies are not supported")
    return int(named.get(b"content-length", b"0"))


def is_own(peer: tuple[str, int], table: Callable[[], str] = Path("/proc/net/tcp").read_text) -> bool:
    """Return whether a local connection comes from a process of this user; True if the system does not show it."""
    try:
        rows = table()
    except OSError:  # not Linux; the address policy still applies
        return True
    at = rows.find(f": {int.from_bytes(socket.inet_aton(peer[0]), 'little'):08X}:{peer[1]:04X} ")
    return at >= 0 and int(rows[at:].split(None, 8)[7]) == os.getuid()
