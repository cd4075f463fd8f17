"""ASGI without a framework: what came, and small answers."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from afresh.text.redact import one_line

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
LONGEST = 2_000  # characters of a sentence

PREFIX = "/api/v1"
MCP = "/mcp"
OPEN = "/health"


class Refused(Exception):
    """A request that is not answered, with the status and the sentence that say why."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def values(scope: Scope, name: bytes) -> list[str]:
    """Every value of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def value(scope: Scope, name: bytes) -> str | None:
    """The value of a header; None where it is missing or given twice."""
    found = values(scope, name)
    return found[0] if len(found) == 1 else None


async def answer(send: Send, status: int, body: bytes, media: str, headers: Mapping[str, str]) -> None:
    """Send a whole answer."""
    head = {"content-type": media, "content-length": str(len(body)), **headers}
    await send({"type": "http.response.start", "status": status, "headers": encoded(head.items())})
    await send({"type": "http.response.body", "body": body})


async def answer_json(send: Send, status: int, told: object) -> None:
    """Send a whole answer in JSON."""
    await answer(send, status, json.dumps(told).encode(), "application/json", {})


async def refuse(send: Send, refused: Refused) -> None:
    """Send a refusal as problem+json."""
    told = {
        "type": "about:blank",
        "title": HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "detail": one_line(refused.detail)[:LONGEST],
    }
    await answer(send, refused.status, json.dumps(told).encode(), "application/problem+json", refused.headers)


def bodiless(send: Send, asked: Scope, scope: Scope) -> Send:
    """Sends what a HEAD asks for of the answer to the GET `asked`, and notes which route gave it."""
    ended = False

    async def head_only(message: Message) -> None:
        nonlocal ended
        if message["type"] == "http.response.start":
            scope["route"] = asked.get("route")
            await send(message)
        elif not ended:
            ended = True
            await send({"type": "http.response.body", "body": b""})

    return head_only


def encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI takes them."""
    return [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers]


def route_of(scope: Scope) -> str:
    """The pattern of an address and not the address: whoever asks must not make up new names."""
    if scope["path"] == MCP:
        return MCP
    route: str | None = getattr(scope.get("route"), "path", None)
    if route is None:
        return "other"
    below = scope["path"].startswith(f"{PREFIX}/") and not route.startswith(PREFIX)
    return f"{PREFIX}{route}" if below else route
