"""Send requests to an ASGI application without a socket."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp as App
from starlette.types import Message

LOOPBACK = ("127.0.0.1", 50_000)
REMOTE = ("203.0.113.9", 50_000)
HERE = {"host": "127.0.0.1:8000"}


@dataclass(frozen=True)
class Answered:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the parsed body."""
        return json.loads(self.body)


async def ask(
    app: App,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    body: bytes | list[bytes] = b"",
    client: tuple[str, int] | None = LOOPBACK,
    token: str | None = None,
) -> Answered:
    """Return the answer to one request; a list of pieces is a body without a length."""
    given = {**HERE, **(headers or {})} | ({"authorization": f"Bearer {token}"} if token else {})
    pieces = [body] if isinstance(body, bytes) else body
    if isinstance(body, bytes) and body:
        given.setdefault("content-length", str(len(body)))
    incoming: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": at < len(pieces) - 1} for at, piece in enumerate(pieces)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path.partition("?")[0],
        "raw_path": path.partition("?")[0].encode(),
        "query_string": path.partition("?")[2].encode(),
        "root_path": "",
        "headers": [(name.encode(), text.encode("latin-1")) for name, text in given.items()],
        "client": client,
        "server": ("127.0.0.1", 8000),
    }
    await app(scope, receive, send)
    start = sent[0]
    found = {name.decode(): text.decode("latin-1") for name, text in start["headers"]}
    return Answered(start["status"], found, b"".join(each["body"] for each in sent[1:] if "body" in each))
