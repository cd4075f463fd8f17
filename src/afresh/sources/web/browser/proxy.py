"""The only way out of a browser: a proxy on loopback that connects where the address policy allows."""

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
_SINGLE = frozenset({b"connection", b"proxy-connection", b"keep-alive"})  # headers for one connection alone
_MOST_TOLD = 5  # hosts that one page is told to have been kept from

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Toll:
    """What passed for one page."""

    limit: int
    passed: int = 0  # bytes towards the browser
    barred: dict[str, str] = field(default_factory=dict)  # host: what kind of address it stands for

    @property
    def spent(self) -> bool:
        """Whether the page has had all the bytes it gets."""
        return self.passed > self.limit


class Unreached(Exception):
    """No connection could be made."""


class BrowserProxy:
    """Serves one browser context, which shows one page at a time; nothing passes before `admit`."""

    def __init__(self, policy: AddressPolicy, *, connect_seconds: float = 10.0) -> None:
        self._policy = policy
        self._connect_seconds = connect_seconds
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._toll: Toll | None = None

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    @property
    def address(self) -> str:
        """Where the browser finds it."""
        if self._server is None:
            raise RuntimeError("the proxy is not open")
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accept, _HOST, 0, limit=_LARGEST_HEAD)

    def admit(self, limit: int) -> Toll:
        """Let the next page through, up to so many bytes."""
        self._toll = Toll(limit)
        return self._toll

    def hang_up(self) -> None:
        """End every connection and let nothing through until the next page."""
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
        except asyncio.CancelledError:  # hung up on: the server that accepted it need not hear of that
            pass
        finally:
            client[1].close()

    async def _serve(self, client: Streams, toll: Toll) -> None:
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
            return  # without an answer: no script can take it for one of the host
        except (Unreached, TimeoutError):
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
        """A connection to an address that was checked; the name is never resolved again."""
        asked_host.set(host)
        loop, refused = asyncio.get_running_loop(), None
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Unreached from error
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
        raise refused or Unreached()

    async def _exchange(
        self, client: Streams, upstream: Streams, head: bytes, length: int, toll: Toll
    ) -> None:
        """One request and its answer; the connection ends with it, so nothing for another host follows."""
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

    async def _both_ways(self, client: Streams, upstream: Streams, toll: Toll) -> None:
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
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, toll: Toll | None
    ) -> None:
        """Hand on what comes until it ends or a page has had enough; each page is counted by itself."""
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
    """A head for a connection that carries nothing else."""
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in _SINGLE]
    return b"\r\n".join((first, *kept, b"Connection: close", b"", b""))


def _length(headers: list[bytes]) -> int:
    """How long the body of a request is; browsers always say."""
    named = {name.strip().lower(): value for name, _, value in (line.partition(b":") for line in headers)}
    if b"transfer-encoding" in named:
        raise ValueError("a body of unknown length")
    return int(named.get(b"content-length", b"0"))


def is_own(peer: tuple[str, int], table: Callable[[], str] | None = None) -> bool:
    """Whether a connection on loopback comes from this user, as far as the system tells."""
    try:
        rows = (table or _sockets)()
    except OSError:  # not Linux: any user of this machine may reach what the policy allows anyway
        return True
    local = f": {int.from_bytes(socket.inet_aton(peer[0]), 'little'):08X}:{peer[1]:04X} "
    at = rows.find(local)
    return at >= 0 and int(rows[at:].split(None, 8)[7]) == os.getuid()


def _sockets() -> str:
    return Path("/proc/net/tcp").read_text()
