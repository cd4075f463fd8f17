"""Errors as `application/problem+json` (RFC 9457): what is wrong, where, and what to do instead."""

import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from afresh.errors import (
    AfreshError,
    AlreadyKept,
    ConfigError,
    EmbedError,
    Forbidden,
    KbError,
    RunBusy,
    SinkError,
    SourceError,
    StoreError,
    StoreWaits,
    Unknown,
    UsageError,
)
from afresh.server.api.replies import as_json
from afresh.server.auth import is_person
from afresh.text.redact import mask_secrets, one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

log = logging.getLogger(__name__)

MEDIA = "application/problem+json"
LONGEST = 2_000  # characters of a sentence
# The first that fits; whatever is not named is trouble of our own.
STATUS: tuple[tuple[type[AfreshError], int], ...] = (
    (Unknown, 404),
    (Forbidden, 403),
    (AlreadyKept, 409),
    (UsageError, 422),
    (ConfigError, 422),
    (SourceError, 422),
    (RunBusy, 409),
    (StoreWaits, 503),
    (StoreError, 503),
    (EmbedError, 503),
    (KbError, 503),
    (SinkError, 503),
)


class FieldError(BaseModel):
    """One field that is wrong."""

    field: str
    detail: str


class Problem(BaseModel):
    """What went wrong."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldError] = []
    run: int | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What was asked for cannot be done", "content": {MEDIA: {"schema": {}}}},
    503: {"description": "The store cannot be used just now", "content": {MEDIA: {"schema": {}}}},
}


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    run: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer that says what went wrong."""
    body = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=one_line(mask_secrets(detail))[:LONGEST],
        errors=list(errors),
        run=run,
    ).model_dump(exclude_defaults=False)
    told = {key: value for key, value in body.items() if value not in (None, [])}
    return Response(as_json(told), status, {**(headers or {}), "cache-control": "no-store"}, MEDIA)


def status_of(error: AfreshError, path: str) -> int:
    """The status that an error is told with; trouble of our own is logged."""
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 500)
    if status == 500:
        log.error("%s failed", path, exc_info=error)
    return status


def told_of_fields(error: RequestValidationError) -> str:
    """What is wrong with the fields of a request, in one sentence."""
    fields = [_field(each) for each in error.errors()[:5]]
    return "; ".join(f"{each.field}: {each.detail}" for each in fields) or "the request is not understood"


def tell_problems(app: FastAPI, page: Callable[[Request, int, str], Response]) -> None:
    """Have every error of an application told as a problem; a person who is lost gets a page.

    What nobody expected is told by the door.
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


def _field(error: "ErrorDetails | Mapping[str, Any]") -> FieldError:
    """A complaint of the validator, in one sentence that never holds the value itself."""
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    return FieldError(field=one_line(place)[:200], detail=one_line(str(error["msg"]))[:500])
