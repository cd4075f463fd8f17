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
from afresh.server.listing import MAX_ID, Listing
from afresh.server.replies import IdempotentRoute, Key, made, tagged
from afresh.server.requests import (
    DEFAULT_LISTED,
    Address,
    Context,
    Id,
    Limit,
    OfSource,
    RequestBody,
    RequestContext,
    Window,
)
from afresh.text.redact import one_line

router = APIRouter(tags=["pages"], route_class=IdempotentRoute)
Url = Annotated[str | None, Query(max_length=2_000, description="Only the page with this URL.")]


async def _filter(
    status: Annotated[PageStatus | None, Query(description="Only pages with this status.")] = None,
    deleted: Annotated[bool, Query(description="Also deleted pages and redirects.")] = False,
    doubtful: Annotated[
        bool, Query(description="Only doubtful pages: the last response looked like an error or login page.")
    ] = False,
    language: Annotated[str | None, Query(max_length=40, description="Only pages in this language.")] = None,
    depth: Annotated[
        int | None, Query(ge=0, le=1_000, description="Only pages at this distance from the start page.")
    ] = None,
    text: Annotated[str | None, Query(max_length=500, description="Only pages with this text in URL or title.")] = None,
) -> PageFilter:
    return PageFilter(status=status, everything=deleted, doubtful=doubtful, language=language, depth=depth, text=text)


Filter = Annotated[PageFilter, Depends(_filter)]


class NewPage(RequestBody):
    """A URL to add to a source."""

    source_id: int = Field(ge=1, le=MAX_ID)
    url: Address


class ChangedPage(RequestBody):
    """When to check a page next."""

    next_look: AwareDatetime


@router.get("/pages", response_model=Listing[PageView])
async def list_pages(ctx: Context, window: Window, which: Filter, source: OfSource = None, url: Url = None) -> Response:
    """List pages in the order in which they were found. With `url`, return at most one page per source."""
    after, sources = window.number or 0, await ctx.sources(source)
    return ctx.reply(await window.of(ctx.kb.pages.records(sources, which, url=url, after=after, limit=window.wanted)))


@router.get("/sources/{number}/pages", response_model=Listing[PageView])
async def pages_of_source(ctx: Context, window: Window, which: Filter, number: Id, url: Url = None) -> Response:
    """List the pages of one source."""
    return await list_pages(ctx, window, which, number, url)


@router.post("/pages", status_code=201, response_model=PageView)
async def add_page(ctx: Context, body: NewPage, key: Key = None) -> Response:
    """Add a URL to a source and start a run of its due pages; if a run is open, the next one fetches the URL."""
    page = await ctx.kb.pages.add(await ctx.source(body.source_id), body.url)
    return made(page, 201, f"/api/v1/pages/{page.id}")


@router.get("/pages/{number}", response_model=PageView)
async def show_page(ctx: Context, number: Id) -> Response:
    """Return one page with its sync status in external stores; 404 after it was deleted."""
    return ctx.reply(await _existing(ctx, number))


@router.patch("/pages/{number}", response_model=PageView)
async def change_page(ctx: Context, number: Id, body: ChangedPage) -> Response:
    """Set when a page is checked next."""
    await _existing(ctx, number)
    if not 1970 <= body.next_look.year < 9000:  # every store supports these years
        raise UsageError("next_look: expected a time from 1970 to 9000")
    return made(await ctx.kb.pages.check_at(number, body.next_look.astimezone(UTC)), 200)


@router.delete("/pages/{number}", status_code=204)
async def remove_page(ctx: Context, number: Id) -> Response:
    """Delete a page from the index. A later run that finds it adds it again; use `exclude` to prevent that."""
    await ctx.page(number)
    await ctx.kb.pages.drop(number)
    return Response(status_code=204)


@router.get("/pages/{number}/text", response_model=OpenedPage)
async def text_of_page(ctx: Context, number: Id) -> Response:
    """Return the stored text of a page as Markdown."""
    page, source = await ctx.page(number)
    return ctx.reply(await ctx.kb.pages.open(page.url, within=source.label))


@router.post("/pages/{number}/restore", response_model=OpenedPage)
async def restore_page(ctx: Context, number: Id, key: Key = None) -> Response:
    """Restore the former text of a page that lost nearly all of its text, until the page changes."""
    page, source = await ctx.page(number)
    return made(await ctx.kb.pages.restore(page.url, within=source.label), 200)


@router.get("/pages/{number}/passages", response_model=Listing[PassageView])
async def passages_of_page(ctx: Context, number: Id) -> Response:
    """List the searchable passages of a page, in the order of its text."""
    await ctx.page(number)
    return ctx.reply({"items": await ctx.kb.pages.passages(number), "next": None})


@router.get("/pages/{number}/history", response_model=Listing[Attempt])
async def history_of_page(ctx: Context, window: Window, number: Id) -> Response:
    """List all fetch attempts of a page, newest first."""
    return ctx.reply(await window.of(ctx.kb.pages.attempts(number, below=window.number, limit=window.wanted)))


@router.get("/pages/{number}/why", response_model=PageExplanation)
async def why_of_page(ctx: Context, number: Id) -> Response:
    """Explain the state of a page by its latest attempts."""
    page, source = await ctx.page(number)
    return ctx.reply(await ctx.kb.pages.explain(page.url, within=source.label))


async def _existing(ctx: RequestContext, number: int) -> PageView:
    page = await ctx.kb.pages.get(number)
    if page.status is PageStatus.DELETED:
        raise NotFound(f"page {number} was deleted; see /api/v1/pages/{number}/why for when and why")
    return page


changes_router = APIRouter(tags=["changes"])
Kind = Annotated[ChangeKind | None, Query(description="Only changes of this kind.")]
EPOCH = "1970-01-01T00:00:00Z"


@changes_router.get("/changes", response_model=Listing[ChangeView])
async def list_changes(
    ctx: Context,
    window: Window,
    source: OfSource = None,
    run: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only of the run with this id.")] = None,
    url: Annotated[str | None, Query(max_length=2_000, description="Only of the page with this URL.")] = None,
    kind: Kind = None,
) -> Response:
    """List changes with their diffs, newest first."""
    sources, below, limit = await ctx.sources(source), window.number, window.wanted
    found = ctx.kb.pages.changes(sources=sources, run=run, url=url, kind=kind, below=below, limit=limit)
    return ctx.reply(await window.of(found))


@changes_router.get("/sources/{number}/changes", response_model=Listing[ChangeView])
async def changes_of_source(ctx: Context, window: Window, number: Id, kind: Kind = None) -> Response:
    """List the changes of one source."""
    return await list_changes(ctx, window, number, kind=kind)


@changes_router.get(
    "/changes.atom",
    response_class=Response,
    responses={200: {"content": {"application/atom+xml": {}}, "description": "An Atom feed."}},
)
async def feed(ctx: Context, source: OfSource = None, limit: Limit = DEFAULT_LISTED) -> Response:
    """Return the newest changes as an Atom feed."""
    changes = await ctx.kb.pages.changes(sources=await ctx.sources(source), limit=limit)
    return tagged(ctx.request, atom(changes).encode(), "application/atom+xml")


def atom(changes: list[ChangeView]) -> str:
    """Return an Atom feed. The bytes depend only on the changes, so the ETag is stable."""
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
    return escape("\n".join(map(one_line, raw.split("\n"))) if lines else one_line(raw))
