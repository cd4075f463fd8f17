"""The frame of all web pages: templates, assets, parts of lists and error pages."""

import gzip
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined

from afresh.access.permissions import Permissions
from afresh.app import utc_now
from afresh.errors import AfreshError, UsageError
from afresh.server.auth import allowed_of
from afresh.server.replies import packed, status_of, told_of_fields
from afresh.server.web.drawing import DRAWINGS
from afresh.server.web.words import FILTERS, moment
from afresh.text.redact import mask_secrets, one_line

Item = TypeVar("Item")
Word = TypeVar("Word", bound=StrEnum)
SHOWN = 50  # in one part of a list
CHANGES = 20  # in one part: each shows its diff
Filter = Annotated[str, Query(max_length=500)]
Cursor = Annotated[str | None, Query(max_length=4_000)]


async def part(
    found: Awaitable[Sequence[Item]], cursor_of: Callable[[Item], str], shown: int = SHOWN
) -> dict[str, object]:
    """Return a part of a list that was fetched with one extra item, and the cursor of the next part."""
    items = await found
    here = list(items[:shown])
    return {"items": here, "more": cursor_of(here[-1]) if len(items) > shown else None}


def one_of(kind: type[Word], field: str, typed: str) -> Word | None:
    """Return a typed word as a member of an enum; None for an empty text."""
    try:
        return kind(typed) if typed else None
    except ValueError:
        raise UsageError(f"{field}: expected one of {', '.join(kind)}, got {typed[:50]!r}") from None


def number_in(field: str, typed: str, largest: int = 1_000_000) -> int | None:
    """Return a typed whole number; None for an empty text."""
    if not typed.strip():
        return None
    if not typed.strip().isdecimal() or len(typed) > 12 or int(typed) > largest:
        raise UsageError(f"{field}: expected a whole number, got {typed[:50]!r}")
    return int(typed)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # without a referrer, browsers hide the origin of our own forms
    "cache-control": "no-store",
    "vary": "cookie",
}
SHORT = 4_000  # bytes; shorter pages are not compressed
LONGEST = 2_000  # characters of an error
RETRY_SECONDS = "5"
TITLES = {  # for people who do not know HTTP statuses
    401: "You are not logged in",
    403: "That is not allowed",
    404: "There is no such page",
    405: "There is nothing to see here",
    409: "That is being done already",
    413: "That is too much at once",
    421: "This server has another name",
    422: "That cannot be done",
    429: "Too many requests",
    500: "Something went wrong",
    503: "That cannot be reached just now",
}


@cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("afresh.server.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals["asset"] = asset_url
    made.globals.update(DRAWINGS)
    return made


def show(request: Request, template: str, status: int = 200, /, **given: object) -> Response:
    """Return a page, compressed if the client accepts gzip; pages contain no secrets."""
    page = Response(drawn(request, template, **given), status, HEADERS, "text/html")
    return packed(request, page) if len(page.body) > SHORT else page


def drawn(request: Request, template: str, /, **given: object) -> str:
    allowed: Permissions = allowed_of(request.scope)
    now = utc_now()
    page = templates().get_template(template)
    return page.render(
        here=request.url.path,
        may_write=allowed.may_write and not request.app.state.read_only,
        everywhere=allowed.everywhere,
        logged_in=bool(request.scope["state"].get("login")),
        ago=partial(moment, now=now),
        now=now,
        with_query=partial(with_query, request),
        paged="after" in request.query_params,
        **given,
    )


def to(place: str) -> Response:
    """Return a redirect after a form was handled."""
    return Response(status_code=303, headers={**HEADERS, "location": place})


def with_query(request: Request, **changed: object) -> str:
    """Return the query of this page with some parameters changed; None removes one."""
    kept = {**{name: text for name, text in request.query_params.items() if text}, **changed}
    return f"?{urlencode({name: value for name, value in kept.items() if value is not None})}"


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; of repeated fields the last one wins."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("", "application/x-www-form-urlencoded"):
        raise UsageError("a form is sent as application/x-www-form-urlencoded")
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise UsageError("this form cannot be read") from None


def trouble(request: Request, status: int, detail: str) -> Response:
    told = one_line(mask_secrets(detail))[:LONGEST]
    title = TITLES.get(status) or HTTPStatus(status).phrase
    back = _way_back(request)
    answer = show(request, "error.html", status, code=status, title=title, detail=told, back=back)
    if status == 503:
        answer.headers["retry-after"] = RETRY_SECONDS
    return answer


def _way_back(request: Request) -> str | None:
    """Return the page of this server that the browser came from, if it is another one."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    place = f"{came.path}?{came.query}" if came.query else came.path
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return place if came.netloc == request.url.netloc and is_ours(place) and place != here else None


def is_ours(place: str) -> bool:
    """Return whether a place is a path on this server: `//x` and `/\\x` are not."""
    return place.startswith("/") and place[1:2] not in ("/", "\\") and place.isascii() and place.isprintable()


class PageRoute(APIRoute):
    """A route for people: it shows errors as pages."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except AfreshError as error:
                return trouble(request, status_of(error, request.url.path), str(error))
            except RequestValidationError as error:
                if any(each["loc"][0] == "path" for each in error.errors()):
                    return trouble(request, 404, f"there is nothing at {request.url.path[:200]}")
                return trouble(request, 422, told_of_fields(error))

        return told


KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"

assets_router = APIRouter(include_in_schema=False)


def asset_url(name: str) -> str:
    return f"/assets/{name}?v={_file(name)[1]}"


@assets_router.get("/assets/{name}")
async def asset(name: str, request: Request, v: str | None = None) -> Response:
    allowed_of(request.scope)  # open to everyone
    if name not in _names():
        raise HTTPException(404)
    raw, tag = _file(name)
    headers = {"cache-control": FOREVER if v == tag else "no-cache", "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        raw, headers = _packed(name), {**headers, "content-encoding": "gzip"}
    return Response(raw, media_type=KINDS[name.rpartition(".")[2]], headers=headers)


@cache
def _names() -> frozenset[str]:
    found = files("afresh.server.web").joinpath("assets").iterdir()
    return frozenset(each.name for each in found if each.name.rpartition(".")[2] in KINDS)


@cache
def _file(name: str) -> tuple[bytes, str]:
    raw = files("afresh.server.web").joinpath("assets", name).read_bytes()
    return raw, sha256(raw).hexdigest()[:12]


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(_file(name)[0], 9, mtime=0)
