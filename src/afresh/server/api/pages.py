"""REST routes of pages and their changes, as JSON and as an Atom feed."""

from datetime import UTC
from typing import Annotated
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime, Field

from afresh.errors import NotFound, UsageError
from afresh.model.filters import PageFilter
from afresh.model.labels import label_of
from afresh.model.overview import PassageView
from afresh.model.records import Attempt, ChangeKind, PageStatus
from afresh.model.reports import ChangeView, OpenedPage, PageExplanation, PageView
from afresh.present.formats import moment
from afresh.server.listing import Listing
from afresh.server.replies import IdempotentRoute, Key, made, tagged
from afresh.server.requests import (
    LARGEST,
    USUAL,
    Address,
    Id,
    Limit,
    OfSource,
    Parted,
    Reached,
    RequestBody,
    RequestContext,
)
from afresh.text.redact import one_line

router = APIRouter(tags=["pages"], route_class=IdempotentRoute)
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
    return PageFilter(
        status=status, everything=deleted, doubtful=doubtful, language=language, depth=depth, text=text
    )


Asked = Annotated[PageFilter, Depends(asked)]


class NewPage(RequestBody):
    """An address to look at."""

    source_id: int = Field(ge=1, le=LARGEST)
    url: Address


class ChangedPage(RequestBody):
    """When to look at a page again."""

    next_look: AwareDatetime


@router.get("/pages", response_model=Listing[PageView])
async def list_pages(
    reach: Reached, part: Parted, which: Asked, source: OfSource = None, url: Url = None
) -> Response:
    """Pages in the order they were found; with `url` none or one of each source."""
    pages = await reach.kb.pages.records(
        await reach.sources(source), which, url=url, after=part.number or 0, limit=part.wanted
    )
    return reach.reply(part.of(pages))


@router.get("/sources/{number}/pages", response_model=Listing[PageView])
async def pages_of_source(
    reach: Reached, part: Parted, which: Asked, number: Id, url: Url = None
) -> Response:
    """List the pages of one source."""
    return await list_pages(reach, part, which, number, url)


@router.post("/pages", status_code=201, response_model=PageView)
async def add_page(reach: Reached, body: NewPage, key: Key = None) -> Response:
    """Make an address of a source known, and look at it with what is due."""
    source = await reach.source(body.source_id)
    page = await reach.kb.pages.add(source, body.url)
    return made(page, 201, f"/api/v1/pages/{page.id}")


@router.get("/pages/{number}", response_model=PageView)
async def show_page(reach: Reached, number: Id) -> Response:
    """One page, with its copies in external stores; 404 once it is deleted."""
    return reach.reply(await _living(reach, number))


@router.patch("/pages/{number}", response_model=PageView)
async def change_page(reach: Reached, number: Id, body: ChangedPage) -> Response:
    """Set when a page is looked at next."""
    await _living(reach, number)
    if not 1970 <= body.next_look.year < 9000:  # the range that every store supports
        raise UsageError("next_look: expected a time from 1970 to 9000")
    return made(await reach.kb.pages.check_at(number, body.next_look.astimezone(UTC)), 200)


@router.delete("/pages/{number}", status_code=204)
async def remove_page(reach: Reached, number: Id) -> Response:
    """Take a page out of the index; a later run that finds it brings it back. Rules keep it out."""
    await reach.page(number)
    await reach.kb.pages.drop(number)
    return Response(status_code=204)


@router.get("/pages/{number}/text", response_model=OpenedPage)
async def text_of_page(reach: Reached, number: Id) -> Response:
    """Return the stored text of a page as Markdown."""
    page, source = await reach.page(number)
    return reach.reply(await reach.kb.pages.open(page.url, within=source.label))


@router.post("/pages/{number}/restore", response_model=OpenedPage)
async def restore_page(reach: Reached, number: Id, key: Key = None) -> Response:
    """Put back the former text of a page that lost nearly all of it, until the page changes."""
    page, source = await reach.page(number)
    return made(await reach.kb.pages.restore(page.url, within=source.label), 200)


@router.get("/pages/{number}/passages", response_model=Listing[PassageView])
async def passages_of_page(reach: Reached, number: Id) -> Response:
    """List the searchable passages of a page, in the order of its text."""
    await reach.page(number)
    return reach.reply({"items": await reach.kb.pages.passages(number), "next": None})


@router.get("/pages/{number}/history", response_model=Listing[Attempt])
async def history_of_page(reach: Reached, part: Parted, number: Id) -> Response:
    """Every attempt to look at a page, newest first; the first is the latest."""
    attempts = await reach.kb.pages.attempts(number, below=part.number, limit=part.wanted)
    return reach.reply(part.of(attempts))


@router.get("/pages/{number}/why", response_model=PageExplanation)
async def why_of_page(reach: Reached, number: Id) -> Response:
    """Return the evidence for the state of a page."""
    page, source = await reach.page(number)
    return reach.reply(await reach.kb.pages.explain(page.url, within=source.label))


async def _living(reach: RequestContext, number: int) -> PageView:
    page = await reach.kb.pages.get(number)
    if page.status is PageStatus.DELETED:
        told = f"page {number} was deleted: /api/v1/pages/{number}/why says when and why"
        raise NotFound(f"{told}, as long as its record is kept")
    return page


changes_router = APIRouter(tags=["changes"])
Kind = Annotated[ChangeKind | None, Query(description="Only changes of this kind.")]
EPOCH = "1970-01-01T00:00:00Z"


@changes_router.get("/changes", response_model=Listing[ChangeView])
async def list_changes(
    reach: Reached,
    part: Parted,
    source: OfSource = None,
    run: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this run.")] = None,
    url: Annotated[str | None, Query(max_length=2_000, description="Only of this address.")] = None,
    kind: Kind = None,
) -> Response:
    """List changes with their diffs, newest first."""
    changes = await reach.kb.pages.changes(
        sources=await reach.sources(source),
        run=run,
        url=url,
        kind=kind,
        below=part.number,
        limit=part.wanted,
    )
    return reach.reply(part.of(changes))


@changes_router.get("/sources/{number}/changes", response_model=Listing[ChangeView])
async def changes_of_source(reach: Reached, part: Parted, number: Id, kind: Kind = None) -> Response:
    """List the changes of one source."""
    return await list_changes(reach, part, number, kind=kind)


@changes_router.get(
    "/changes.atom",
    response_class=Response,
    responses={200: {"content": {"application/atom+xml": {}}, "description": "An Atom feed."}},
)
async def feed(reach: Reached, source: OfSource = None, limit: Limit = USUAL) -> Response:
    """Return the newest changes as an Atom feed."""
    changes = await reach.kb.pages.changes(sources=await reach.sources(source), limit=limit)
    return tagged(reach.request, atom(changes).encode(), "application/atom+xml")


def atom(changes: list[ChangeView]) -> str:
    """Return an Atom feed; it depends only on the changes, so its ETag is stable."""
    updated = moment(changes[0].at) if changes else EPOCH
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>urn:afresh:changes</id><title>afresh: changes</title><updated>{updated}</updated>"
        f"<author><name>afresh</name></author>{''.join(map(_entry, changes))}</feed>\n"
    )


def _entry(change: ChangeView) -> str:
    label = label_of(change.source, change.version)
    title = _text(f"{change.kind}: {change.url}")
    diff = f'<content type="text">{_text(change.diff, lines=True)}</content>' if change.diff else ""
    return (
        f"<entry><id>urn:afresh:change:{change.id}</id><title>{title}</title>"
        f"<updated>{moment(change.at)}</updated><link href={quoteattr(one_line(change.url))}/>"
        f"<category term={quoteattr(str(change.kind))}/><category term={quoteattr(label)}/>{diff}</entry>"
    )


def _text(raw: str, *, lines: bool = False) -> str:
    """Return a text escaped for XML."""
    return escape("\n".join(map(one_line, raw.split("\n"))) if lines else one_line(raw))
