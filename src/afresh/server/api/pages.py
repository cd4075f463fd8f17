"""Pages: what a source holds."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from afresh.errors import Unknown, UsageError
from afresh.model.filters import PageFilter
from afresh.model.overview import PassageView
from afresh.model.records import Attempt, PageStatus
from afresh.model.reports import OpenedPage, PageView, Why
from afresh.server.api.replies import made, reply
from afresh.server.cursors import read_number
from afresh.server.idempotency import Key, OnceRoute
from afresh.server.listing import Listing, by_id, part
from afresh.server.parts import LARGEST, USUAL, Address, Cursor, Id, Limit
from afresh.server.request_context import Reach, Reached

router = APIRouter(tags=["pages"], route_class=OnceRoute)
Url = Annotated[str | None, Query(max_length=2_000, description="Just the page at this address.")]


def asked(
    status: Annotated[PageStatus | None, Query(description="Only pages with this status.")] = None,
    deleted: Annotated[bool, Query(description="Also pages that were deleted, and redirects.")] = False,
    doubtful: Annotated[bool, Query(description="Only pages whose last look is not believed.")] = False,
    language: Annotated[str | None, Query(max_length=40, description="Only pages in this language.")] = None,
    depth: Annotated[
        int | None, Query(ge=0, le=1_000, description="Only pages this many links from the root.")
    ] = None,
    text: Annotated[
        str | None, Query(max_length=500, description="Only with this in address or title.")
    ] = None,
) -> PageFilter:
    """Which pages a request is after."""
    return PageFilter(
        status=status, everything=deleted, doubtful=doubtful, language=language, depth=depth, text=text
    )


Asked = Annotated[PageFilter, Depends(asked)]


class NewPage(BaseModel):
    """An address to look at."""

    model_config = ConfigDict(extra="forbid")

    source_id: int = Field(ge=1, le=LARGEST)
    url: Address


class ChangedPage(BaseModel):
    """When to look at a page again."""

    model_config = ConfigDict(extra="forbid")

    next_look: AwareDatetime


@router.get("/pages", response_model=Listing[PageView])
async def list_pages(
    request: Request,
    reach: Reached,
    which: Asked,
    source: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this source.")] = None,
    url: Url = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """Pages in the order they were found; with `url` none or one of each source."""
    pages = await reach.kb.pages.records(
        await reach.sources(source),
        which,
        url=url,
        after=read_number(cursor) or 0,
        limit=limit + 1,
    )
    return reply(request, part(pages, limit, by_id))


@router.get("/sources/{number}/pages", response_model=Listing[PageView])
async def pages_of_source(
    request: Request,
    reach: Reached,
    which: Asked,
    number: Id,
    url: Url = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The pages of one source."""
    return await list_pages(request, reach, which, number, url, cursor, limit)


@router.post("/pages", status_code=201, response_model=PageView)
async def add_page(reach: Reached, body: NewPage, key: Key = None) -> Response:
    """Make an address of a source known, and look at it with what is due."""
    source = await reach.source(body.source_id)
    page = await reach.kb.pages.add(source, body.url)
    return made(page, 201, f"/api/v1/pages/{page.id}")


@router.get("/pages/{number}", response_model=PageView)
async def show_page(request: Request, reach: Reached, number: Id) -> Response:
    """One page, with its copies in external stores; 404 once it is deleted."""
    return reply(request, await _living(reach, number))


@router.patch("/pages/{number}", response_model=PageView)
async def change_page(reach: Reached, number: Id, body: ChangedPage) -> Response:
    """Set when a page is looked at next."""
    await _living(reach, number)
    return made(await reach.kb.pages.check_at(number, _sane(body.next_look)), 200)


@router.delete("/pages/{number}", status_code=204)
async def remove_page(reach: Reached, number: Id) -> Response:
    """Take a page out of the index; a later run that finds it brings it back. Rules keep it out."""
    await reach.page(number)
    await reach.kb.pages.drop(number)
    return Response(status_code=204)


@router.get("/pages/{number}/text", response_model=OpenedPage)
async def text_of_page(request: Request, reach: Reached, number: Id) -> Response:
    """The stored text of a page, as Markdown."""
    page, source = await reach.page(number)
    return reply(request, await reach.kb.pages.open(page.url, within=source.label))


@router.post("/pages/{number}/restore", response_model=OpenedPage)
async def restore_page(reach: Reached, number: Id, key: Key = None) -> Response:
    """Put back the former text of a page that lost nearly all of it, until the page changes."""
    page, source = await reach.page(number)
    return made(await reach.kb.pages.restore(page.url, within=source.label), 200)


@router.get("/pages/{number}/passages", response_model=Listing[PassageView])
async def passages_of_page(request: Request, reach: Reached, number: Id) -> Response:
    """The pieces of a page that are searched, in the order of its text."""
    await reach.page(number)
    return reply(request, {"items": await reach.kb.pages.passages(number), "next": None})


@router.get("/pages/{number}/history", response_model=Listing[Attempt])
async def history_of_page(
    request: Request, reach: Reached, number: Id, cursor: Cursor = None, limit: Limit = USUAL
) -> Response:
    """Every attempt to look at a page, newest first; the first is the latest."""
    await reach.page(number)
    attempts = await reach.kb.pages.attempts(number, below=read_number(cursor), limit=limit + 1)
    return reply(request, part(attempts, limit, by_id))


@router.get("/pages/{number}/why", response_model=Why)
async def why_of_page(request: Request, reach: Reached, number: Id) -> Response:
    """The evidence behind the state of a page."""
    page, source = await reach.page(number)
    return reply(request, await reach.kb.pages.explain(page.url, within=source.label))


async def _living(reach: Reach, number: int) -> PageView:
    page, _ = await reach.page(number)
    if page.status is PageStatus.DELETED:
        told = f"page {number} was deleted: /api/v1/pages/{number}/why says when and why"
        raise Unknown(f"{told}, as long as its record is kept")
    return page


def _sane(moment: datetime) -> datetime:
    """A time that every store can hold."""

    if not 1970 <= moment.year < 9000:
        raise UsageError("next_look: expected a time from 1970 to 9000")
    return moment.astimezone(UTC)
