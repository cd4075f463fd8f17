"""Responses of routes: JSON with ETag, problems (RFC 9457), event streams and idempotent answers."""

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from afresh.access.idempotency import StoredResponse
from afresh.errors import (
    AfreshError,
    AlreadyExists,
    ConfigError,
    EmbedError,
    Forbidden,
    KbError,
    NotFound,
    RunBusy,
    SinkError,
    SourceError,
    StoreError,
    UsageError,
)
from afresh.kb import KnowledgeBase
from afresh.present.formats import plain
from afresh.server.asgi import PROBLEM_MEDIA, RequestRefused, problem_of
from afresh.server.auth import allowed_of, is_person
from afresh.text.redact import mask_secrets, one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


MEDIA = "application/json"
FRESH = {"cache-control": "private, no-cache"}  # private caches have to revalidate


def as_json(value: object) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode()


def reply(request: Request, value: object) -> Response:
    """Return the response to a read, or 304 if the client has it already."""
    return tagged(request, as_json(value), MEDIA)


def tagged(request: Request, body: bytes, media: str) -> Response:
    tag, known = f'"{sha256(body).hexdigest()[:32]}"', request.headers.get("if-none-match", "")
    named = [each.strip().removeprefix("W/") for each in known.split(",")]  # weak comparison
    if known.strip() == "*" or tag in named:
        return Response(status_code=304, headers={"etag": tag, **FRESH})
    return Response(body, headers={"etag": tag, **FRESH}, media_type=media)


def packed(request: Request, answer: Response) -> Response:
    """Compress a response if the client accepts gzip; its ETag becomes weak, since both forms share it."""
    answer.headers.add_vary_header("accept-encoding")
    if not answer.body or "gzip" not in request.headers.get("accept-encoding", ""):
        return answer
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    if "etag" in kept:
        kept["etag"] = f"W/{kept['etag']}"
    less = gzip.compress(bytes(answer.body), 5, mtime=0)
    return Response(less, answer.status_code, {**kept, "content-encoding": "gzip"})


def made(value: object, status: int = 201, location: str | None = None) -> Response:
    headers = {"cache-control": "no-store"} | ({"location": location} if location else {})
    return Response(as_json(value), status, headers, MEDIA)


log = logging.getLogger(__name__)

# The first match wins; all other errors are internal.
STATUS: tuple[tuple[tuple[type[AfreshError], ...], int], ...] = (
    ((NotFound,), 404),
    ((Forbidden,), 403),
    ((AlreadyExists, RunBusy), 409),
    ((UsageError, ConfigError, SourceError), 422),
    ((StoreError, EmbedError, KbError, SinkError), 503),
)


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What was asked for cannot be done", "content": {PROBLEM_MEDIA: {"schema": {}}}},
    503: {"description": "The store cannot be used just now", "content": {PROBLEM_MEDIA: {"schema": {}}}},
}


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    run: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    told = problem_of(status, mask_secrets(detail))
    told |= {"errors": list(errors)} if errors else {}
    told |= {"run": run} if run is not None else {}
    return Response(as_json(told), status, {**(headers or {}), "cache-control": "no-store"}, PROBLEM_MEDIA)


def status_of(error: AfreshError, path: str) -> int:
    """Return the HTTP status of an error; log internal errors."""
    status = next((code for kinds, code in STATUS if isinstance(error, kinds)), 500)
    if status == 500:
        log.error("%s failed", path, exc_info=error)
    return status


def told_of_fields(error: RequestValidationError) -> str:
    fields = [_field(each) for each in error.errors()[:5]]
    return (
        "; ".join(f"{each['field']}: {each['detail']}" for each in fields) or "the request is not understood"
    )


def tell_problems(app: FastAPI, page: Callable[[Request, int, str], Response]) -> None:
    """Return errors of an application as problems; browsers get a page for HTTP errors.

    Unexpected exceptions are handled by `AuthMiddleware`.
    """

    @app.exception_handler(AfreshError)
    async def known(request: Request, error: AfreshError) -> Response:
        status = status_of(error, request.url.path)
        headers = {"retry-after": "5"} if status == 503 else None
        return problem(status, str(error), run=getattr(error, "run", None), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        fields = [_field(each) for each in error.errors()]
        return problem(422, told_of_fields(error), errors=fields[:50])

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        detail = str(error.detail)
        if error.status_code == 404 and detail == "Not Found":
            detail = f"there is nothing at {request.url.path[:200]}: /docs lists the routes"
        if error.status_code == 405:
            detail = f"{request.method} is not for {request.url.path[:200]}: /docs lists the routes"
        if is_person(request.scope):
            return page(request, error.status_code, detail.partition(": /docs")[0])
        return problem(error.status_code, detail, headers=error.headers)


def _field(error: "ErrorDetails | Mapping[str, Any]") -> dict[str, str]:
    """Return a validation error as one sentence that never contains the value."""
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    return {"field": one_line(place)[:200], "detail": one_line(str(error["msg"]))[:500]}


MAX_STREAMS = 50  # per client: an open stream queries the store regularly
WAIT_SECONDS = "20"
AGAIN_SECONDS = 30.0  # before the token is checked again
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def streamed(request: Request, events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return a stream of server-sent events; raise a 429 if the client has too many open."""
    open_now, who = request.app.state.desk.streams, allowed_of(request.scope).who
    if open_now[who] >= MAX_STREAMS:
        why = f"{MAX_STREAMS} streams of events are open with this token; close some, or wait"
        raise RequestRefused(429, why, retry_after=WAIT_SECONDS)

    holds, clock = request.scope["state"]["holds"], asyncio.get_running_loop().time

    async def counted() -> AsyncIterator[bytes]:
        open_now[who] += 1
        asked = clock()
        try:
            async for event in events:
                if clock() - asked > AGAIN_SECONDS:
                    if not await holds():
                        return
                    asked = clock()
                yield event
        finally:
            open_now[who] -= 1

    return StreamingResponse(counted(), media_type="text/event-stream", headers=STREAM_HEADERS)


HEADER = "idempotency-key"
MAX_KEY_CHARS = 200
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=MAX_KEY_CHARS,
        description="A name for this request: made again within a day, it gets the same answer.",
    ),
]


class IdempotentRoute(APIRoute):
    """A route whose POST runs once for each key."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if request.method != "POST" or key is None:
                return await handle(request)
            return await _once(request, key, handle)

        return once


async def _once(request: Request, key: str, handle: Callable[[Request], Any]) -> Response:
    if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise UsageError(f"Idempotency-Key: expected a printable text of at most {MAX_KEY_CHARS} characters")
    kb: KnowledgeBase = request.app.state.kb
    caller = allowed_of(request.scope).who
    what = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    asked = sha256(what + await request.body()).hexdigest()
    turn = await kb.tokens.begin_answer(caller, key, asked)
    if not isinstance(turn, StoredResponse):
        async with turn:
            response: Response = await handle(request)
            body = bytes(response.body).decode()
            await turn.keep(
                StoredResponse(asked, response.status_code, response.headers.get("location"), body)
            )
        return response
    if turn.asked != asked:
        raise UsageError("Idempotency-Key: this key was used for another request: take a new one")
    if turn.status is None:
        raise RunBusy("the same request is being answered just now: ask again in a moment")
    headers = {"location": turn.location} if turn.location else {}
    headers |= {"idempotency-replayed": "true", "cache-control": "no-store"}
    return Response(turn.body, turn.status, headers, MEDIA)
