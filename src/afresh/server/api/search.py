"""REST route of the search."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from afresh.errors import UsageError
from afresh.model.reports import SearchHit
from afresh.present.search_parts import AnswerParts
from afresh.present.wording import read_language, read_length, read_path
from afresh.search.records import SearchMode
from afresh.server.request_checks import is_led_from_elsewhere
from afresh.server.requests import Cursor, Label, Reached, Text

router = APIRouter(tags=["search"])
LED_HERE = (
    "max_age was ignored: a page of another site led here, and it may not have pages looked at again; "
    "open the address yourself"
)
Length = Annotated[str | None, Query(max_length=40, description="A length of time such as 15m, 1h or 7d.")]


class Found(BaseModel):
    """The best hits, what to know about them, and where to go on."""

    hits: list[SearchHit]
    notes: list[str]
    next: str | None = None


@router.get("/search", response_model=Found)
async def search(
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
    mode: SearchMode = SearchMode.HYBRID,
    max_age: Annotated[
        str | None,
        Query(max_length=40, description="First look again at found pages that were checked longer ago."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    all_passages: bool = False,
    context: bool = False,
    cursor: Cursor = None,
) -> Response:
    """Return the best passages by keyword and semantic search, with the freshness of each.

    With `next` as cursor and all else as before come those that follow, 200 of one question in all.
    """
    if not q.strip():
        raise UsageError("q: name some words to look for")
    if max_age is not None:
        reach.allowed.check_write()
        if reach.request.app.state.read_only:
            raise UsageError("max_age: this server only reads, and looks at no page again")
    unasked = max_age is not None and is_led_from_elsewhere(reach.request.scope)
    labels = list(dict.fromkeys(within or ()))
    narrowed = (language, path, changed_within, checked_within, mode)
    parts = AnswerParts(cursor, q, sorted(labels), *narrowed, all_passages, passages=all_passages)
    found = await reach.kb.search.search(
        q,
        within=labels,
        language=read_language("language", language),
        path=read_path("path", path),
        changed_within=read_span("changed_within", changed_within),
        checked_within=read_span("checked_within", checked_within),
        mode=mode,
        max_age=None if unasked else read_length("max_age", max_age),
        limit=parts.wanted(limit),
        every_chunk=all_passages,
        context=context,
    )
    new = parts.new(found.hits)
    shown = new[:limit]
    notes = [*found.notes, *((LED_HERE,) if unasked else ())]
    return reach.reply({"hits": shown, "notes": notes, "next": parts.cursor(shown, new)})


def read_span(field: str, typed: str | None) -> timedelta | None:
    """Return a length of time of at least a second; None for an empty text."""
    length = read_length(field, typed)
    if length is not None and length < timedelta(seconds=1):
        raise UsageError(f"{field}: expected a longer time such as 7d")
    return length
