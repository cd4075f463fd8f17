"""Search: the same questions as `afresh search`."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from afresh.errors import UsageError
from afresh.model.reports import Hit
from afresh.present.search_parts import Parts
from afresh.search.request import Mode
from afresh.server.api.replies import reply
from afresh.server.host_checks import is_led_from_elsewhere
from afresh.server.parts import Cursor, Label, Text
from afresh.server.request_context import Reached
from afresh.text.durations import read_duration
from afresh.text.language import normalise_tag

router = APIRouter(tags=["search"])
LED_HERE = (
    "max_age was ignored: a page of another site led here, and it may not have pages looked at again; "
    "open the address yourself"
)
Length = Annotated[str | None, Query(max_length=40, description="A length of time such as 15m, 1h or 7d.")]


class Found(BaseModel):
    """The best hits, what to know about them, and where to go on."""

    hits: list[Hit]
    notes: list[str]
    next: str | None = None


@router.get("/search", response_model=Found)
async def search(
    request: Request,
    reach: Reached,
    q: Annotated[Text, Query(description="What to look for; quotes keep words together.")],
    within: Annotated[
        list[Label] | None,
        Query(
            alias="in", max_length=50, description="Only these sources, as NAME, NAME@VERSION or NAME@RANGE."
        ),
    ] = None,
    language: Annotated[str | None, Query(max_length=40, description="As en or pt-BR.")] = None,
    path: Annotated[str | None, Query(max_length=1_000, description="Only paths like '/guide/*'.")] = None,
    changed_within: Length = None,
    checked_within: Length = None,
    mode: Mode = Mode.HYBRID,
    max_age: Annotated[
        str | None,
        Query(max_length=40, description="First look again at found pages that were checked longer ago."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    all_passages: bool = False,
    context: bool = False,
    cursor: Cursor = None,
) -> Response:
    """The passages that answer best by their words and their meaning, with how fresh each is.

    With `next` as cursor and all else as before come those that follow, 200 of one question in all.
    """
    if not q.strip():
        raise UsageError("q: name some words to look for")
    if max_age is not None:
        reach.allowed.check_write()
        if request.app.state.read_only:
            raise UsageError("max_age: this server only reads, and looks at no page again")
    unasked = max_age is not None and is_led_from_elsewhere(request.scope)
    labels = list(dict.fromkeys(within or ()))
    narrowed = (language, path, changed_within, checked_within, mode)
    parts = Parts(cursor, q, sorted(labels), *narrowed, all_passages, passages=all_passages)
    found = await reach.kb.search.search(
        q,
        within=labels,
        language=read_language(language),
        path=_glob(path),
        changed_within=read_length("changed_within", changed_within, least=timedelta(seconds=1)),
        checked_within=read_length("checked_within", checked_within, least=timedelta(seconds=1)),
        mode=mode,
        max_age=None if unasked else read_length("max_age", max_age),
        limit=parts.wanted(limit),
        every_chunk=all_passages,
        context=context,
    )
    new = parts.new(found.hits)
    shown = new[:limit]
    notes = [*found.notes, *((LED_HERE,) if unasked else ())]
    return reply(request, {"hits": shown, "notes": notes, "next": parts.cursor(shown, new)})


def read_language(typed: str | None) -> str | None:
    """A language that was typed; None: nothing was."""
    tag = normalise_tag(typed) if typed is not None else None
    if typed is not None and tag is None:
        raise UsageError(f"language: expected a tag such as en or pt-BR, got {typed!r}")
    return tag


def _glob(typed: str | None) -> str | None:
    if typed is not None and not typed.strip():
        raise UsageError("path: expected a pattern such as '/guide/*', got nothing")
    return typed


def read_length(field: str, typed: str | None, least: timedelta = timedelta()) -> timedelta | None:
    """A length of time that was typed; None: nothing was."""
    if typed is None:
        return None
    try:
        length = read_duration(typed)
    except UsageError as error:
        raise UsageError(f"{field}: {error}") from None
    if length < least:
        raise UsageError(f"{field}: expected a longer time such as 7d")
    return length
