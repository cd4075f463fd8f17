"""The frame of every page: templates, the headers they are sent with, and errors that say what to do."""

from collections.abc import Awaitable, Callable
from functools import cache, partial
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined

from afresh.access.permissions import Allowed
from afresh.app import utc_now
from afresh.errors import AfreshError, UsageError
from afresh.server.api.replies import packed
from afresh.server.auth import allowed_of
from afresh.server.problems import status_of, told_of_fields
from afresh.server.web.assets import asset_url
from afresh.server.web.drawing import DRAWINGS
from afresh.server.web.words import FILTERS, moment
from afresh.text.redact import mask_secrets, one_line

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with none at all a browser hides the origin of our own forms
    "cache-control": "no-store",
    "vary": "cookie",
}
SHORT = 4_000  # bytes, which are sent as they are
LONGEST = 2_000  # characters of an error
RETRY_SECONDS = "5"
TITLES = {  # what went wrong, for people who never heard of statuses
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
    """The templates; whatever they are given is escaped."""
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
    """A page, in fewer bytes for who reads gzip: nothing secret stands in one."""
    page = Response(drawn(request, template, **given), status, HEADERS, "text/html")
    return packed(request, page) if len(page.body) > SHORT else page


def drawn(request: Request, template: str, /, **given: object) -> str:
    """A page, or a part of one, as HTML."""
    allowed: Allowed = allowed_of(request.scope)
    now = utc_now()
    return (
        templates()
        .get_template(template)
        .render(
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
    )


def to(place: str) -> Response:
    """Where to look after a form was done."""
    return Response(status_code=303, headers={**HEADERS, "location": place})


def with_query(request: Request, **changed: object) -> str:
    """The address of this page with other parameters; None leaves one out."""
    kept = {name: text for name, text in request.query_params.items() if text}
    kept |= {name: str(value) for name, value in changed.items() if value is not None}
    for name in [name for name, value in changed.items() if value is None]:
        kept.pop(name, None)
    return f"?{urlencode(kept)}"


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form that was sent; of one that is there twice the last."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("", "application/x-www-form-urlencoded"):
        raise UsageError("a form is sent as application/x-www-form-urlencoded")
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise UsageError("this form cannot be read") from None


def trouble(request: Request, status: int, detail: str) -> Response:
    """A page that says what went wrong."""
    told = one_line(mask_secrets(detail))[:LONGEST]
    title = TITLES.get(status) or HTTPStatus(status).phrase
    back = _way_back(request)
    answer = show(request, "error.html", status, code=status, title=title, detail=told, back=back)
    if status == 503:
        answer.headers["retry-after"] = RETRY_SECONDS
    return answer


def _way_back(request: Request) -> str | None:
    """The page of ours from which somebody came, if it is another one."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    place = f"{came.path}?{came.query}" if came.query else came.path
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return place if came.netloc == request.url.netloc and is_ours(place) and place != here else None


def is_ours(place: str) -> bool:
    """Whether a place is a page of this server: `//x` and `/\\x` are others."""
    return place.startswith("/") and place[1:2] not in ("/", "\\") and place.isascii() and place.isprintable()


class PageRoute(APIRoute):
    """A route for people: what goes wrong is a page too."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """The handler, with errors told as pages."""
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
