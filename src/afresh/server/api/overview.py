"""REST routes of the status, external stores and chart data."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from afresh.model.charts import Calendar, Politeness, RunSavings, SiteMap, UpcomingChecks
from afresh.model.records import PageStatus
from afresh.model.reports import FoundVersion, StoreStatus
from afresh.server.listing import Listing
from afresh.server.replies import IdempotentRoute, Key, made, packed
from afresh.server.requests import Context, Id, Label, OneSource, RequestBody, Window
from afresh.services.charts import NODES, YEAR
from afresh.sync.reports import CopyView, PageCopy, SinkView, SyncReport

router = APIRouter(tags=["overview"], route_class=IdempotentRoute)


class SourceCopies(RequestBody):
    """Sync status of a source in each external store."""

    source_id: int
    sinks: list[SinkView] = Field(default_factory=list)


class Sync(RequestBody):
    """Which external stores to sync, and how."""

    to: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        [], max_length=50, description="Only these external stores; default: all stores of the source."
    )
    dry_run: bool = Field(False, description="Only report what would be done.")
    verify: bool = Field(
        False, description="Also list the documents in the stores, and repair those that afresh wrote."
    )


class Synced(BaseModel):
    """The result of a sync in each external store; for a dry run, what a sync would do."""

    source_id: int
    reports: list[SyncReport]


class PageCopies(BaseModel):
    """Sync status of a page in each external store."""

    page_id: int
    copies: list[CopyView] = Field(default_factory=list)


@router.get("/status", response_model=StoreStatus)
async def status(ctx: Context) -> Response:
    """Return sizes, queued work, and runs that need attention."""
    ctx.allowed.check_everywhere()
    return ctx.reply(await ctx.kb.status.get())


@router.get("/versions", response_model=FoundVersion)
async def find_version(
    ctx: Context,
    label: Annotated[Label, Query(description="Name of the source, with a version or a range, such as react@^18.")],
) -> Response:
    """Return the version that matches a label best, and all indexed versions."""
    return ctx.reply(await ctx.kb.sources.find_version(label))


@router.get("/sources/{number}/copies", response_model=SourceCopies)
async def copies_of_source(ctx: Context, source: OneSource) -> Response:
    """Return the sync status of a source in each external store."""
    return ctx.reply({"source_id": source.id, "sinks": await ctx.kb.sinks.views([source])})


@router.get("/sources/{number}/copies/pages", response_model=Listing[PageCopy])
async def pages_of_copies(
    ctx: Context,
    window: Window,
    source: OneSource,
    sink: Annotated[str, Query(max_length=100, description="The name of the external store.")],
    state: Annotated[PageStatus | None, Query(description="Only copies in this state.")] = None,
) -> Response:
    """List the pages of a source with their sync status in one external store."""
    found = ctx.kb.sinks.copies(source, sink, state=state, after=window.number or 0, limit=window.wanted)
    return ctx.reply(await window.of(found))


@router.post("/sources/{number}/sync", response_model=Synced)
async def sync_source(ctx: Context, source: OneSource, body: Sync, key: Key = None) -> Response:
    """Sync the external stores of a source now, and answer when that is done.

    The sync status is also in `GET /sources/{number}/copies`. A store that another sync is using is reported as
    `busy`. 409 if all stores are busy.
    """
    reports = await ctx.kb.sinks.sync(source=source, **body.model_dump())
    return made({"source_id": source.id, "reports": reports}, 200)


@router.get("/pages/{number}/copies", response_model=PageCopies)
async def copies_of_page(ctx: Context, number: Id) -> Response:
    """Return the sync status of a page in each external store."""
    page, _ = await ctx.page(number)
    return ctx.reply({"page_id": page.id, "copies": page.copies})


charts_router = APIRouter(tags=["charts"])
Days = Annotated[int, Query(ge=1, le=3_700, description="Number of days, including today.")]
Nodes = Annotated[int, Query(ge=1, le=NODES, description="Maximum number of pages.")]


@charts_router.get("/calendar", response_model=Calendar)
async def calendar(ctx: Context, days: Days = YEAR) -> Response:
    """Return the number of changes per day and kind in all sources; days without changes are left out."""
    return ctx.reply(await ctx.kb.charts.calendar(None, days=days))


@charts_router.get("/sources/{number}/calendar", response_model=Calendar)
async def calendar_of_source(ctx: Context, source: OneSource, days: Days = YEAR) -> Response:
    """Return the number of changes per day and kind in one source."""
    return ctx.reply(await ctx.kb.charts.calendar([source.id], days=days))


@charts_router.get("/sources/{number}/map", response_model=SiteMap)
async def map_of_source(ctx: Context, source: OneSource, limit: Nodes = NODES) -> Response:
    """Return the pages of a source and the links between them, nearest to the start page first."""
    return packed(ctx.request, ctx.reply(await ctx.kb.charts.site_map(source, limit=limit)))


@charts_router.get("/hosts", response_model=Politeness)
async def hosts(ctx: Context) -> Response:
    """Return the rate limits, queues and states of all hosts."""
    ctx.allowed.check_everywhere()
    return ctx.reply(await ctx.kb.charts.politeness())


@charts_router.get("/sources/{number}/hosts", response_model=Politeness)
async def hosts_of_source(ctx: Context, source: OneSource) -> Response:
    """Return the rate limits, queues and states of the hosts of one source."""
    return ctx.reply(await ctx.kb.charts.politeness(source))


@charts_router.get("/sources/{number}/ahead", response_model=UpcomingChecks)
async def ahead_of_source(ctx: Context, source: OneSource) -> Response:
    """Return how many checks are due now, in each of the next 48 hours, and later."""
    return ctx.reply(await ctx.kb.charts.checks_ahead(source))


@charts_router.get("/sources/{number}/receipt", response_model=RunSavings)
async def receipt_of_source(ctx: Context, source: OneSource) -> Response:
    """Return how fresh a source is, and what its last run cost and saved."""
    return ctx.reply(await ctx.kb.sources.receipt(source))
