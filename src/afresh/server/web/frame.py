"""What all web pages share: templates, assets, the division of long lists into parts, and error pages."""

from collections.abc import Awaitable, Callable
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BeforeValidator, StringConstraints

from afresh.access.permissions import Permissions
from afresh.app import utc_now
from afresh.errors import AfreshError, UsageError
from afresh.server.auth import allowed_of
from afresh.server.replies import describe_fields, packed, status_of
from afresh.server.requests import Cursor, ListWindow
from afresh.server.web.drawing import DRAWINGS
from afresh.server.web.rendered import diff_rows
from afresh.server.web.words import FILTERS, moment
from afresh.text.redact import mask_secrets, one_line

Item = TypeVar("Item")
PAGE_ITEMS = 50  # in one part of a list
PAGE_CHANGES = 20  # changes in one part; fewer, since each shows its diff


def _none_if_blank(typed: object) -> object:
    return typed.strip() or None if isinstance(typed, str) else typed


Choice = Annotated[Item | None, BeforeValidator(_none_if_blank), Query()]
Filter = Choice[Annotated[str, StringConstraints(max_length=500)]]


def _parts_of(limit: int) -> Callable[..., Awaitable[ListWindow]]:
    async def window(after: Cursor = None) -> ListWindow:
        return ListWindow(after, limit)

    return window


Items = Annotated[ListWindow, Depends(_parts_of(PAGE_ITEMS))]
Changes = Annotated[ListWindow, Depends(_parts_of(PAGE_CHANGES))]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with no-referrer, browsers would hide the origin of forms of this server
    "cache-control": "no-store",
    "vary": "cookie",
}
MIN_PACKED_BYTES = 4_000  # shorter pages are not compressed
MAX_DETAIL_CHARS = 2_000
TITLES = {  # headings for HTTP statuses
    401: "Not logged in",
    403: "Not allowed",
    404: "Page not found",
    405: "This page cannot be opened directly",
    409: "Already in progress",
    413: "Too much data",
    421: "Unknown host name",
    422: "Invalid input",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Temporarily unavailable",
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
    made.globals.update(DRAWINGS, asset=asset_url, diff_rows=diff_rows)
    return made


def show(request: Request, template: str, status: int = 200, /, **given: object) -> Response:
    """Return a page, compressed if the client accepts gzip; that is safe, because pages contain no secrets."""
    page = Response(render(request, template, **given), status, HEADERS, "text/html")
    return packed(request, page) if len(page.body) > MIN_PACKED_BYTES else page


def render(request: Request, template: str, /, **given: object) -> str:
    allowed: Permissions = allowed_of(request.scope)
    now = utc_now()
    page = templates().get_template(template)
    return page.render(
        here=request.url.path,
        asked=request.query_params,
        may_write=allowed.may_write and not request.app.state.read_only,
        everywhere=allowed.everywhere,
        logged_in=bool(request.scope["state"].get("login")),
        ago=partial(moment, now=now),
        now=now,
        with_query=partial(with_query, request),
        paged="after" in request.query_params,
        **given,
    )


def redirect(place: str) -> Response:
    return Response(status_code=303, headers={**HEADERS, "location": place})


def with_query(request: Request, **changed: object) -> str:
    """Return the query string of this page with some parameters changed; the value None removes one."""
    kept = {**{name: text for name, text in request.query_params.items() if text}, **changed}
    return f"?{urlencode({name: value for name, value in kept.items() if value is not None})}"


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; if a field is repeated, its last value counts."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("", "application/x-www-form-urlencoded"):
        raise UsageError("the form must be sent as application/x-www-form-urlencoded")
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise UsageError("this form cannot be read") from None


def show_error(request: Request, status: int, detail: str) -> Response:
    line = one_line(mask_secrets(detail))[:MAX_DETAIL_CHARS]
    title = TITLES.get(status) or HTTPStatus(status).phrase
    answer = show(request, "error.html", status, code=status, title=title, detail=line, back=_previous_page(request))
    if status == 503:
        answer.headers["retry-after"] = "5"
    return answer


def _previous_page(request: Request) -> str | None:
    """Return the page from which the browser came, if it is another page of this server; else None."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    place = f"{came.path}?{came.query}" if came.query else came.path
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return place if came.netloc == request.url.netloc and is_ours(place) and place != here else None


def is_ours(place: str) -> bool:
    """Return whether a text is a path on this server; `//x` and `/\\x` would lead to another host."""
    return place.startswith("/") and place[1:2] not in ("/", "\\") and place.isascii() and place.isprintable()


class PageRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except AfreshError as error:
                return show_error(request, status_of(error, request.url.path), str(error))
            except RequestValidationError as error:
                if any(each["loc"][0] == "path" for each in error.errors()):
                    return show_error(request, 404, f"{request.url.path[:200]} does not exist.")
                return show_error(request, 422, describe_fields(error))

        return handle_errors


MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
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
    headers = {"cache-control": FOREVER if v == tag else "no-cache"}
    return packed(request, Response(raw, media_type=MEDIA[name.rpartition(".")[2]], headers=headers))


@cache
def _names() -> frozenset[str]:
    found = files("afresh.server.web").joinpath("assets").iterdir()
    return frozenset(each.name for each in found if each.name.rpartition(".")[2] in MEDIA)


@cache
def _file(name: str) -> tuple[bytes, str]:
    raw = files("afresh.server.web").joinpath("assets", name).read_bytes()
    return raw, sha256(raw).hexdigest()[:12]
