"""Small ASGI helpers without a framework: read headers, and refuse requests."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.types import Message, Scope, Send

from afresh.text.redact import one_line

MAX_DETAIL_CHARS = 2_000
PROBLEM_MEDIA = "application/problem+json"

PREFIX = "/api/v1"
MCP = "/mcp"
OPEN = "/health"


class RequestRefused(Exception):
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


def problem_of(status: int, detail: str) -> dict[str, object]:
    line = one_line(detail)[:MAX_DETAIL_CHARS]
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": line}


async def refuse(send: Send, refused: RequestRefused) -> None:
    body = json.dumps(problem_of(refused.status, refused.detail)).encode()
    headers = {"content-type": PROBLEM_MEDIA, "content-length": str(len(body)), **refused.headers}
    await send({"type": "http.response.start", "status": refused.status, "headers": encode(headers)})
    await send({"type": "http.response.body", "body": body})


def without_body(send: Send, get_scope: Scope, head_scope: Scope) -> Send:
    """Return a `send` that drops the body of a GET response, and copies the route of the GET to the HEAD request."""
    ended = False

    async def head_only(message: Message) -> None:
        nonlocal ended
        if message["type"] == "http.response.start":
            head_scope["route"] = get_scope.get("route")
            await send(message)
        elif not ended:
            ended = True
            await send({"type": "http.response.body", "body": b""})

    return head_only


def encode(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]


def route_of(scope: Scope) -> str:
    """Return the pattern of the route, not the path, so that clients cannot create new metric labels."""
    if scope["path"] == MCP:
        return MCP
    route: str | None = getattr(scope.get("route"), "path", None)
    if route is None:
        return "other"
    below = scope["path"].startswith(f"{PREFIX}/") and not route.startswith(PREFIX)
    return f"{PREFIX}{route}" if below else route
