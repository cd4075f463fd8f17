"""REST route of the search."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from afresh.errors import UsageError
from afresh.model.reports import SearchHit
from afresh.present.search_parts import AnswerParts
from afresh.present.wording import read_language, read_length, read_path
from afresh.search.records import SearchMode
from afresh.server.request_checks import is_from_other_site
from afresh.server.requests import Context, Cursor, Label, Text

router = APIRouter(tags=["search"])
FROM_OTHER_SITE = "max_age was ignored, because a page of another site led here; open this URL yourself to use max_age"
Length = Annotated[str | None, Query(max_length=40, description="A duration such as 15m, 1h or 7d.")]


class Found(BaseModel):
    """The best hits, notes about them, whether none is a good match, and the cursor for the next hits."""

    hits: list[SearchHit]
    notes: list[str]
    weak: bool = False
    next: str | None = None


@router.get("/search", response_model=Found)
async def search(
    ctx: Context,
    q: Annotated[Text, Query(description="Words or a question; use quotes for exact phrases.")],
    within: Annotated[
        list[Label] | None,
        Query(alias="in", max_length=50, description="Only these sources, as NAME, NAME@VERSION or NAME@RANGE."),
    ] = None,
    language: Annotated[str | None, Query(max_length=40, description="Such as en or pt-BR.")] = None,
    path: Annotated[str | None, Query(max_length=1_000, description="Only paths like '/guide/*'.")] = None,
    changed_within: Length = None,
    checked_within: Length = None,
    mode: SearchMode = SearchMode.HYBRID,
    max_age: Annotated[
        str | None,
        Query(max_length=40, description="First check result pages again if their last check is older than this."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    all_passages: Annotated[bool, Query(description="Every matching passage, not only the best of each page.")] = False,
    context: Annotated[bool, Query(description="Also the text around each passage.")] = False,
    cursor: Cursor = None,
) -> Response:
    """Return the best passages by keyword and semantic search, with the freshness of each.

    For more hits, repeat the request with `next` as `cursor`. A query has at most 200 hits.
    """
    if not q.strip():
        raise UsageError("q: enter a search query")
    if max_age is not None:
        ctx.allowed.check_write()
        if ctx.request.app.state.read_only:
            raise UsageError("max_age: this server is read-only and fetches no pages")
    ignores_age = max_age is not None and is_from_other_site(ctx.request.scope)
    labels = list(dict.fromkeys(within or ()))
    filters = (language, path, changed_within, checked_within, mode)
    parts = AnswerParts(cursor, q, sorted(labels), *filters, all_passages, passages=all_passages)
    found = await ctx.kb.search.search(
        q,
        within=labels,
        language=read_language("language", language),
        path=read_path("path", path),
        changed_within=read_length("changed_within", changed_within, 1),
        checked_within=read_length("checked_within", checked_within, 1),
        mode=mode,
        max_age=None if ignores_age else read_length("max_age", max_age),
        limit=parts.wanted(limit),
        every_chunk=all_passages,
        context=context,
    )
    new = parts.new(found.hits)
    notes = [*found.notes, *((FROM_OTHER_SITE,) if ignores_age else ())]
    answer = {"hits": new[:limit], "notes": notes, "weak": found.weak, "next": parts.cursor(new[:limit], new)}
    return ctx.reply(answer)
