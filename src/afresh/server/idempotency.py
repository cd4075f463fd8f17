"""Idempotency-Key: a request that is made twice is done once."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Header, Request, Response
from fastapi.routing import APIRoute

from afresh.access.idempotency import KeptAnswer
from afresh.errors import RunBusy, UsageError
from afresh.kb import KnowledgeBase
from afresh.server.auth import allowed_of

HEADER = "idempotency-key"
LONGEST = 200
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=LONGEST,
        description="A name for this request: made again within a day, it gets the same answer.",
    ),
]


class OnceRoute(APIRoute):
    """A route whose POST is done once for each key."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """The handler, with what was answered before in front of it."""
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if request.method != "POST" or key is None:
                return await handle(request)
            return await _once(request, key, handle)

        return once


async def _once(request: Request, key: str, handle: Callable[[Request], Any]) -> Response:
    if not 0 < len(key) <= LONGEST or not key.isprintable():
        raise UsageError(f"Idempotency-Key: expected a printable text of at most {LONGEST} characters")
    kb: KnowledgeBase = request.app.state.kb
    caller = allowed_of(request.scope).who
    what = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    asked = sha256(what + await request.body()).hexdigest()
    turn = await kb.tokens.begin_answer(caller, key, asked)
    if isinstance(turn, KeptAnswer):
        return _again(turn, asked)
    async with turn:
        response: Response = await handle(request)
        body = bytes(response.body).decode()
        await turn.keep(KeptAnswer(asked, response.status_code, response.headers.get("location"), body))
    return response


def _again(known: KeptAnswer, asked: str) -> Response:
    if known.asked != asked:
        raise UsageError("Idempotency-Key: this key was used for another request: take a new one")
    if known.status is None:
        raise RunBusy("the same request is being answered just now: ask again in a moment")
    headers = {"location": known.location} if known.location else {}
    headers |= {"idempotency-replayed": "true", "cache-control": "no-store"}
    return Response(known.body, known.status, headers, "application/json")
