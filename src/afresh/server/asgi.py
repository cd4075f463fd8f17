"""Small ASGI helpers without a framework: read requests and send short responses."""

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
MAX_DETAIL_CHARS = 2_000
PROBLEM_MEDIA = "application/problem+json"

PREFIX = "/api/v1"
MCP = "/mcp"
OPEN = "/health"


class RequestRefused(Exception):
    """A refused request, with the status and the reason."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def value(scope: Scope, name: bytes) -> str | None:
    """Return the value of a header; None if it is missing or repeated."""
    found = values(scope, name)
    return found[0] if len(found) == 1 else None


async def answer(send: Send, status: int, body: bytes, media: str, headers: Mapping[str, str]) -> None:
    head = {"content-type": media, "content-length": str(len(body)), **headers}
    await send({"type": "http.response.start", "status": status, "headers": encoded(head.items())})
    await send({"type": "http.response.body", "body": body})


async def answer_json(send: Send, status: int, told: object) -> None:
    await answer(send, status, json.dumps(told).encode(), "application/json", {})


def problem_of(status: int, detail: str) -> dict[str, object]:
    """Return a problem document (RFC 9457)."""
    title, told = HTTPStatus(status).phrase, one_line(detail)[:MAX_DETAIL_CHARS]
    return {"type": "about:blank", "title": title, "status": status, "detail": told}


async def refuse(send: Send, refused: RequestRefused) -> None:
    body = json.dumps(problem_of(refused.status, refused.detail)).encode()
    await answer(send, refused.status, body, PROBLEM_MEDIA, refused.headers)


def bodiless(send: Send, asked: Scope, scope: Scope) -> Send:
    """Return a `send` that drops the body of the response to the GET `asked`, and copies its route."""
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
    return [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers]


def route_of(scope: Scope) -> str:
    """Return the pattern of the route, never the path: clients must not create new metric names."""
    if scope["path"] == MCP:
        return MCP
    route: str | None = getattr(scope.get("route"), "path", None)
    if route is None:
        return "other"
    below = scope["path"].startswith(f"{PREFIX}/") and not route.startswith(PREFIX)
    return f"{PREFIX}{route}" if below else route
