"""HTTP as bytes on a socket: requests are read, answers are whatever a script makes of them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus

from afresh.testing.script import Answer
from afresh.testing.site import HangUp, Listen, RecordedRequest

Reply = bytes | AsyncIterator[bytes]  # bytes leave the connection open, pieces end with it
MAX_HEAD_BYTES = 1024 * 1024


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of a well-framed answer; `content_type="…"` becomes `Content-Type: …`."""
    return raw(status, body, {name.replace("_", "-").title(): value for name, value in headers.items()})


def raw(status: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    """The bytes of an answer with exactly these headers, and a Content-Length where none is given."""
    named = {name.lower() for name in headers}
    lines = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in headers.items())]
    if status != HTTPStatus.NOT_MODIFIED and not named & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode() + body


def sent(answer: Answer) -> bytes:
    """An answer of a scripted site as it goes over the wire."""
    return raw(answer.status, answer.body, answer.headers)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in list(HTTPStatus) else "Odd"


async def next_request(reader: asyncio.StreamReader) -> RecordedRequest | None:
    """The next request of a connection, or None at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8", "surrogateescape")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    at = asyncio.get_running_loop().time()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return RecordedRequest(method=method, path=path, headers=headers, body=body, at=at)


async def write(reply: Reply, writer: asyncio.StreamWriter) -> bool:
    """Send a reply; whether the connection stays open for another."""
    if isinstance(reply, bytes):
        writer.write(reply)
        await writer.drain()
        return True
    async for piece in reply:
        if writer.is_closing():
            break
        writer.write(piece)
        await writer.drain()
    return False


def raw_sockets(respond: Callable[[RecordedRequest], Awaitable[Reply]]) -> Listen:
    """What lets a LoopbackServer answer in raw bytes."""

    async def listen(listener: socket.socket) -> HangUp:
        talks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            talk = asyncio.ensure_future(_talk(reader, writer, respond))
            talks.add(talk)
            talk.add_done_callback(talks.discard)

        server = await asyncio.start_server(accept, sock=listener, limit=MAX_HEAD_BYTES)

        async def hang_up() -> None:
            server.close()
            for talk in talks:
                talk.cancel()
            await asyncio.gather(*talks, return_exceptions=True)

        return hang_up

    return listen


async def _talk(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, respond: Callable[[RecordedRequest], Awaitable[Reply]]
) -> None:
    """Answer one client until either side has enough."""
    try:
        with suppress(ConnectionError):
            while (asked := await next_request(reader)) and await write(await respond(asked), writer):
                pass
    finally:
        writer.close()
