"""Hosts on loopback, served by a process with high priority that records the time of each request."""

import asyncio
import multiprocessing
import os
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

SERVICE = ("/robots.txt", "/sitemap.xml", "/llms.txt")
ANSWER = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
WINDOW = 10  # looks at a host that are measured together
TICK = 0.005  # seconds between two looks of the hosts at their own lateness
LATE = "late"  # the path under which they note it
URGENT = -15  # their niceness, where the system lets us: a look is stamped when it arrives


@dataclass
class Hosts:
    """Hosts with different ports, and the requests they got."""

    number: int
    pages: int  # of each
    ports: list[int] = field(default_factory=list)
    asked: list[tuple[float, int, str]] = field(default_factory=list)
    late: float = 0.0  # seconds by which a look was stamped too late at most
    _notes: IO[str] | None = None

    @contextmanager
    def serving(self, folder: Path) -> Iterator[str]:
        """Start the process; yield the URL of the page that links to all hosts."""
        sockets = [_bound() for _ in range(self.number)]
        self.ports = [each.getsockname()[1] for each in sockets]
        notes = folder / "asked"
        notes.touch()
        child = multiprocessing.get_context("fork").Process(
            target=_serve, args=(sockets, self.pages, notes), daemon=True
        )
        child.start()
        with notes.open() as self._notes:
            try:
                yield f"http://127.0.0.1:{self.ports[0]}/"
            finally:
                self.listen()
                child.kill()
                child.join()
                for each in sockets:
                    each.close()

    def listen(self) -> None:
        """Read the requests that were recorded since the last call."""
        assert self._notes is not None
        for line in self._notes:
            at, port, path = line.split()
            if path == LATE:
                self.late = max(self.late, float(port))
            else:
                self.asked.append((float(at), int(port), path))

    def forget(self) -> None:
        """Forget all requests."""
        self.listen()
        self.asked.clear()

    def looks(self) -> Counter[str]:
        """Return how often each page was requested."""
        return Counter(f"{port}{path}" for _, port, path in self.asked if path not in SERVICE)

    def haste(self, delay: float) -> tuple[float, list[tuple[float, int, str]]]:
        """Return by how many seconds a number of requests to one host came faster than allowed."""
        of_host: dict[int, list[tuple[float, int, str]]] = defaultdict(list)
        for each in sorted(self.asked):
            if each[2] not in SERVICE:
                of_host[each[1]].append(each)
        windows = [looks[at : at + WINDOW] for looks in of_host.values() for at in range(len(looks) - WINDOW + 1)]
        hastiest = min(windows, key=lambda looks: looks[-1][0] - looks[0][0], default=[])
        span = hastiest[-1][0] - hastiest[0][0] if hastiest else float("inf")
        return max(0.0, (WINDOW - 1) * delay - span), hastiest


def _bound() -> socket.socket:
    each = socket.socket()
    each.bind(("127.0.0.1", 0))
    each.listen(1024)
    return each


def _serve(sockets: list[socket.socket], pages: int, notes: Path) -> None:
    with suppress(PermissionError):
        os.nice(URGENT)
    with notes.open("a", buffering=1) as file:
        asyncio.run(_answer_all(sockets, pages, file))


async def _answer_all(sockets: list[socket.socket], pages: int, notes: IO[str]) -> None:
    loop, ports = asyncio.get_running_loop(), [each.getsockname()[1] for each in sockets]
    for number, each in enumerate(sockets):
        await loop.create_server(lambda n=number: _Answers(notes, ports, n, pages), sock=each)  # type: ignore[misc]
    latest = 0.0
    while True:
        began = time.monotonic()
        await asyncio.sleep(TICK)
        late = time.monotonic() - began - TICK
        if late > latest:
            latest = late
            notes.write(f"0 {late:.6f} {LATE}\n")


class _Answers(asyncio.Protocol):
    def __init__(self, notes: IO[str], ports: list[int], number: int, pages: int) -> None:
        self._notes, self._ports, self._number, self._pages = notes, ports, number, pages

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now, path = time.monotonic(), data.split(b" ", 2)[1].decode()
        self._notes.write(f"{now:.6f} {self._ports[self._number]} {path}\n")
        body = self._body(path)
        status = b"404 Not Found" if body is None else b"200 OK"
        assert isinstance(self._transport, asyncio.WriteTransport)
        self._transport.write(ANSWER % (status, len(body or b"")) + (body or b""))

    def _body(self, path: str) -> bytes | None:
        """Return a page. The first page of a host links to its other pages; that of the first host to all hosts."""
        if path in SERVICE:
            return None
        links = [f"/p{page}" for page in range(1, self._pages)] if path == "/" else []
        if path == "/" and self._number == 0:
            links += [f"http://127.0.0.1:{other}/" for other in self._ports[1:]]
        listed = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
        name = f"Page {path} of host {self._number}"
        text = f"<main><h1>{name}</h1><p>All about {name}.</p>{listed}"
        return f"<html lang=en><title>{name}</title>{text}".encode()
