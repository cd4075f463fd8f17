"""A cheap server of generated pages: `python -m soak.generated PORT PAGES WIDTH [HUBS]`.

Page n links to its next WIDTH pages in the order of a tree. With HUBS, the start page links to HUBS pages, and
each of these links to WIDTH pages without links.
"""

import asyncio
import sys
from dataclasses import dataclass

OK = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "1"\r\nContent-Length: %d\r\n\r\n'
WORDS = ("replica", "segment", "cursor", "tenant", "broker", "ledger", "shard", "journal", "lease", "socket", "region")


@dataclass(frozen=True)
class Pages:
    """The content of the site."""

    number: int
    width: int
    hubs: int = 0

    def body(self, place: int) -> bytes:
        """Return the page with this number."""
        text = "".join(f"<h2>Part {part}</h2><p>{self._sentence(place, part)}</p>" for part in range(4))
        links = "".join(f'<li><a href="/p{child}.html">Page {child}</a></li>' for child in self._children(place))
        return (
            f"<!doctype html><html lang=en><head><title>Page {place}</title></head><body><main>"
            f'<h1>Page {place}</h1>{text}<ul><li><a href="/">home</a></li>{links}</ul></main></body></html>'
        ).encode()

    def _children(self, place: int) -> range:
        if not self.hubs:
            first = place * self.width + 1
            return range(first, min(first + self.width, self.number))
        if place == 0:
            return range(1, self.hubs + 1)
        first = self.hubs + 1 + (place - 1) * self.width
        return range(first, first + self.width) if place <= self.hubs else range(0)

    def _sentence(self, place: int, part: int) -> str:
        chosen = (WORDS[(place * 7 + part * 3 + step * (place % 5 + 1)) % len(WORDS)] for step in range(40))
        return f"Number {place} part {part}: " + " ".join(chosen)


class Answers(asyncio.Protocol):
    """Answers each request with a page, or with 304 if the client has it."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for responses."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            if self._transport is not None:
                self._transport.write(self._answer(head))

    def _answer(self, head: bytes) -> bytes:
        path = head.split(b" ", 2)[1]
        place = 0 if path == b"/" else int(path[2:-5]) if path.startswith(b"/p") and path.endswith(b".html") else -1
        if place < 0:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        if b'if-none-match: "1"' in head.lower():
            return b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
        body = self._pages.body(place)
        return OK % len(body) + body


async def serve(port: int, pages: Pages) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Answers(pages), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Pages(*map(int, sys.argv[2:]))))
