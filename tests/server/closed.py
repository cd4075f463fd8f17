"""Check that every route of an application refuses unauthorized requests.

`await prove_closed(app, document, tokens)` requests every route of the OpenAPI document.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp as App
from tests.server.asking import LOOPBACK, REMOTE, ask

from afresh.server.asgi import MCP, OPEN
from afresh.server.auth import HOOKS, SAFE

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
FOREIGN: tuple[tuple[int, Mapping[str, str]], ...] = (
    (421, {"host": "evil.example"}),
    (421, {"host": "evil.example:8000"}),
    (421, {"host": "127.0.0.1.evil.example"}),
    (421, {"host": "localhost.evil.example"}),
    (400, {"host": "localhost@evil.example"}),
    (400, {"host": ""}),
    (403, {"origin": "https://evil.example"}),
    (403, {"origin": "null"}),
    (403, {"origin": "http://127.0.0.1:3000"}),
    (403, {"origin": "http://127.0.0.1:8000.evil.example"}),
    (403, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}),
    (403, {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}),
)


@dataclass(frozen=True)
class Tokens:
    """A read token, and invalid ones."""

    read: str
    dead: Sequence[str]  # revoked, expired, made up


def routes(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Method and path of every route, its parameters filled in."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), re.sub(r"\{[^}]*\}", "1", path)


async def prove_closed(
    app: App, document: Mapping[str, Any], tokens: Tokens, more: Sequence[tuple[str, str]] = ()
) -> int:
    """Request every route without permission; return the number of routes."""
    found = [*routes(document), *more]
    for method, path in found:
        for status, headers in FOREIGN:
            answered = await ask(app, method, path, headers)
            assert answered.status == status, (method, path, headers, answered)
        if path == OPEN:
            continue
        for client in (LOOPBACK, REMOTE):
            answered = await ask(app, method, path, client=client)
            assert answered.status in (401, 404 if path.startswith(HOOKS) else 401), (method, path, answered)
        if path.startswith(HOOKS):
            continue
        for token in tokens.dead:
            answered = await ask(app, method, path, token=token)
            assert answered.status == 401, (method, path, token)
            assert answered.headers["www-authenticate"] == "Bearer"
        if method not in SAFE and path != MCP:
            answered = await ask(app, method, path, token=tokens.read)
            assert answered.status == 403, (method, path, answered)
    return len(found)
