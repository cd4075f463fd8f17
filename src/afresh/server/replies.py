"""Responses of routes: JSON with ETag, problems (RFC 9457), event streams and idempotent answers."""

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from afresh import errors
from afresh.access.idempotency import StoredResponse
from afresh.aio import wait_event
from afresh.errors import AfreshError, RunBusy, StoreError, UsageError
from afresh.kb import KnowledgeBase
from afresh.present.formats import plain
from afresh.server.asgi import PROBLEM_MEDIA, RequestRefused, problem_of
from afresh.server.auth import allowed_of, is_browser
from afresh.text.redact import mask_secrets, one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

log = logging.getLogger(__name__)

MEDIA = "application/json"
FRESH = {"cache-control": "private, no-cache"}  # private caches have to revalidate
MAX_STREAMS = 50  # per client, since each open stream queries the store regularly
RECHECK_SECONDS = 30.0  # between two checks of the token of an open stream
KEEP_ALIVE_SECONDS = 15.0  # time without an event after which a comment is sent
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
# Returns a value (sent only if it differs from the last one), the event, and the seconds until the next poll; None
# as seconds ends the stream.
Poll: TypeAlias = Callable[[], Awaitable[tuple[object, bytes, float | None]]]


def as_json(value: object) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode()


def tagged(request: Request, body: bytes, media: str = MEDIA) -> Response:
    """Return a response with an ETag, or 304 if the client already has this body."""
    tag, known = f'"{sha256(body).hexdigest()[:32]}"', request.headers.get("if-none-match", "")
    named = [each.strip().removeprefix("W/") for each in known.split(",")]  # weak comparison
    if known.strip() == "*" or tag in named:
        return Response(status_code=304, headers={"etag": tag, **FRESH})
    return Response(body, headers={"etag": tag, **FRESH}, media_type=media)


def packed(request: Request, answer: Response) -> Response:
    """Compress a response if the client accepts gzip; make its ETag weak, as the plain response has the same ETag."""
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


# The first match wins; all other errors are internal.
STATUS: tuple[tuple[tuple[type[AfreshError], ...], int], ...] = (
    ((errors.NotFound,), 404),
    ((errors.Forbidden,), 403),
    ((errors.AlreadyExists, RunBusy), 409),
    ((UsageError, errors.ConfigError, errors.SourceError), 422),
    ((StoreError, errors.EmbedError, errors.KbError, errors.SinkError), 503),
)
RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Invalid request", "content": {PROBLEM_MEDIA: {"schema": {}}}},
    503: {"description": "The store is unavailable", "content": {PROBLEM_MEDIA: {"schema": {}}}},
}


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    run: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    document = problem_of(status, mask_secrets(detail))
    document |= {"errors": list(errors)} if errors else {}
    document |= {"run": run} if run is not None else {}
    return Response(as_json(document), status, {**(headers or {}), "cache-control": "no-store"}, PROBLEM_MEDIA)


def status_of(error: AfreshError, path: str) -> int:
    """Return the HTTP status of an error; log internal errors."""
    status = next((code for kinds, code in STATUS if isinstance(error, kinds)), 500)
    if status == 500:
        log.error("%s failed", path, exc_info=error)
    return status


def describe_fields(error: RequestValidationError) -> str:
    fields = [_field(each) for each in error.errors()[:5]]
    return "; ".join(f"{each['field']}: {each['detail']}" for each in fields) or "Invalid request."


def add_error_handlers(app: FastAPI, page: Callable[[Request, int, str], Response]) -> None:
    """Make an application answer errors with JSON problems (RFC 9457).

    A browser that causes an HTTPException gets the result of `page`. `AuthMiddleware` handles unexpected exceptions.
    """

    @app.exception_handler(AfreshError)
    async def known(request: Request, error: AfreshError) -> Response:
        status = status_of(error, request.url.path)
        headers = {"retry-after": "5"} if status == 503 else None
        return problem(status, str(error), run=getattr(error, "run", None), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        return problem(422, describe_fields(error), errors=[_field(each) for each in error.errors()][:50])

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        detail, path, hint = str(error.detail), request.url.path[:200], ""
        if error.status_code == 404 and detail == "Not Found":
            detail, hint = f"{path} does not exist.", " See /docs for all routes."
        if error.status_code == 405:
            detail, hint = f"{path} does not support {request.method}.", " See /docs for all routes."
        if is_browser(request.scope):
            return page(request, error.status_code, detail)
        return problem(error.status_code, detail + hint, headers=error.headers)


def _field(error: "ErrorDetails | Mapping[str, Any]") -> dict[str, str]:
    """Describe a validation error in one sentence that does not quote the invalid value."""
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    is_body = place == "body" and error["type"] in ("model_attributes_type", "json_invalid")
    detail = "expected a JSON object, sent with Content-Type: application/json" if is_body else str(error["msg"])
    return {"field": one_line(place)[:200], "detail": one_line(detail)[:500]}


def stream_events(request: Request, poll: Poll, max_seconds: float = inf) -> StreamingResponse:
    """Return a stream with an event whenever `poll` returns something new; 429 if the client has too many streams."""
    open_now, caller = request.app.state.server.streams, allowed_of(request.scope).caller
    if open_now[caller] >= MAX_STREAMS:
        why = f"{MAX_STREAMS} event streams are open with this token. Close some, or wait."
        raise RequestRefused(429, why, retry_after="20")

    async def count() -> AsyncIterator[bytes]:
        open_now[caller] += 1
        try:
            async for event in _events(request, poll, max_seconds):
                yield event
        finally:
            open_now[caller] -= 1

    return StreamingResponse(count(), media_type="text/event-stream", headers=STREAM_HEADERS)


async def _events(request: Request, poll: Poll, max_seconds: float) -> AsyncIterator[bytes]:
    stopping, is_valid = request.app.state.server.stopping, request.scope["state"]["is_valid"]
    clock = asyncio.get_running_loop().time
    ends = clock() + max_seconds
    last: object = None
    sent_at = checked_at = clock()
    while not stopping.is_set() and clock() < ends:
        try:
            current, event, wait = await poll()
        except StoreError:
            return  # the client reconnects
        if clock() - checked_at > RECHECK_SECONDS:
            if not await is_valid():
                return
            checked_at = clock()
        if current != last:
            last, sent_at = current, clock()
            yield event
        elif clock() - sent_at > KEEP_ALIVE_SECONDS:
            sent_at = clock()
            yield b": keep-alive\n\n"
        if wait is None:
            return
        await wait_event(stopping, wait)


MAX_KEY_CHARS = 200
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=MAX_KEY_CHARS,
        description="Any unique text. The same request with the same key within a day gets the same answer.",
    ),
]


class IdempotentRoute(APIRoute):
    """A route that runs a POST only once per Idempotency-Key."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get("idempotency-key")
            if request.method != "POST" or key is None:
                return await handle(request)
            return await _once(request, key, handle)

        return once


async def _once(request: Request, key: str, handle: Callable[[Request], Any]) -> Response:
    if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise UsageError(f"Idempotency-Key: expected a printable text of at most {MAX_KEY_CHARS} characters")
    kb: KnowledgeBase = request.app.state.kb
    caller = allowed_of(request.scope).caller
    what = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    asked = sha256(what + await request.body()).hexdigest()
    turn = await kb.tokens.begin_answer(caller, key, asked)
    if not isinstance(turn, StoredResponse):
        async with turn:
            response: Response = await handle(request)
            body = bytes(response.body).decode()
            await turn.keep(StoredResponse(asked, response.status_code, response.headers.get("location"), body))
        return response
    if turn.request_hash != asked:
        raise UsageError("Idempotency-Key: this key was used for another request; use a new one")
    if turn.status is None:
        raise RunBusy("the same request is still in progress; try again in a moment")
    headers = {"location": turn.location} if turn.location else {}
    headers |= {"idempotency-replayed": "true", "cache-control": "no-store"}
    return Response(turn.body, turn.status, headers, MEDIA)
