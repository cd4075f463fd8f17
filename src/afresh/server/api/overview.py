"""REST routes of the status, external stores and chart data."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from afresh.model.charts import Calendar, Politeness, RunSavings, SiteMap, UpcomingChecks
from afresh.model.records import PageStatus
from afresh.model.reports import FoundVersion, StoreStatus
from afresh.server.listing import Listing
from afresh.server.replies import IdempotentRoute, Key, made, packed
from afresh.server.requests import Id, Label, Parted, Reached, RequestBody
from afresh.services.charts import NODES, YEAR
from afresh.sync.reports import CopyView, PageCopy, SinkView, SyncReport

router = APIRouter(tags=["overview"], route_class=IdempotentRoute)


class SourceCopies(RequestBody):
    """How a source stands in external stores."""

    source_id: int
    sinks: list[SinkView] = Field(default_factory=list)


class Sync(RequestBody):
    """How to bring external stores in line."""

    to: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        [], max_length=50, description="Only these external stores; else all that hold the source."
    )
    dry_run: bool = Field(False, description="Tell what would be done, and do nothing.")
    verify: bool = Field(False, description="Also list what the stores hold, and repair what is ours.")


class Synced(BaseModel):
    """What was done in each external store, or would be."""

    source_id: int
    reports: list[SyncReport]


class PageCopies(BaseModel):
    """How a page stands in external stores."""

    page_id: int
    copies: list[CopyView] = Field(default_factory=list)


@router.get("/status", response_model=StoreStatus)
async def status(reach: Reached) -> Response:
    """Sizes, waiting work, and runs that need attention."""
    reach.allowed.check_everywhere()
    return reach.reply(await reach.kb.status.get())


@router.get("/versions", response_model=FoundVersion)
async def find_version(
    reach: Reached, label: Annotated[Label, Query(description="As react@^18.")]
) -> Response:
    """Return the version of a source that a label means, and the existing versions."""
    return reach.reply(await reach.kb.sources.find_version(label))


@router.get("/sources/{number}/copies", response_model=SourceCopies)
async def copies_of_source(reach: Reached, number: Id) -> Response:
    """How the pages of a source stand in external stores."""
    source = await reach.source(number)
    return reach.reply({"source_id": source.id, "sinks": await reach.kb.sinks.views([source])})


@router.get("/sources/{number}/copies/pages", response_model=Listing[PageCopy])
async def pages_of_copies(
    reach: Reached,
    part: Parted,
    number: Id,
    sink: Annotated[str, Query(max_length=100, description="The external store.")],
    state: Annotated[PageStatus | None, Query(description="Only copies in this state.")] = None,
) -> Response:
    """List the pages of a source with their sync status in one external store."""
    source = await reach.source(number)
    found = await reach.kb.sinks.copies(source, sink, state=state, after=part.number or 0, limit=part.wanted)
    return reach.reply(part.of(found))


@router.post("/sources/{number}/sync", response_model=Synced)
async def sync_source(reach: Reached, number: Id, body: Sync, key: Key = None) -> Response:
    """Bring the external stores of a source in line now, and answer when that is done.

    Who does not stay until then finds it in `copies`. A store that is being
    synced just now is `busy`; 409 if there is no other.
    """
    source = await reach.source(number)
    reports = await reach.kb.sinks.sync(source=source, **body.model_dump())
    return made({"source_id": source.id, "reports": reports}, 200)


@router.get("/pages/{number}/copies", response_model=PageCopies)
async def copies_of_page(reach: Reached, number: Id) -> Response:
    """Return the sync status of a page in each external store."""
    page, _ = await reach.page(number)
    return reach.reply({"page_id": page.id, "copies": page.copies})


charts_router = APIRouter(tags=["pictures"])
Days = Annotated[int, Query(ge=1, le=3_700, description="How many days back, today included.")]
Nodes = Annotated[int, Query(ge=1, le=NODES, description="How many pages at most.")]


@charts_router.get("/calendar", response_model=Calendar)
async def calendar(reach: Reached, days: Days = YEAR) -> Response:
    """How many changes each day brought to all sources, by kind; days without any are left out."""
    return reach.reply(await reach.kb.charts.calendar(await reach.sources(), days=days))


@charts_router.get("/sources/{number}/calendar", response_model=Calendar)
async def calendar_of_source(reach: Reached, number: Id, days: Days = YEAR) -> Response:
    """How many changes each day brought to one source, by kind."""
    return reach.reply(await reach.kb.charts.calendar(await reach.sources(number), days=days))


@charts_router.get("/sources/{number}/map", response_model=SiteMap)
async def map_of_source(reach: Reached, number: Id, limit: Nodes = NODES) -> Response:
    """Return the pages of a source and the links between them, nearest to the root first."""
    drawn = await reach.kb.charts.site_map(await reach.source(number), limit=limit)
    return packed(reach.request, reach.reply(drawn))


@charts_router.get("/hosts", response_model=Politeness)
async def hosts(reach: Reached) -> Response:
    """How hosts are asked, what waits for them, and which rest."""
    reach.allowed.check_everywhere()
    return reach.reply(await reach.kb.charts.politeness())


@charts_router.get("/sources/{number}/hosts", response_model=Politeness)
async def hosts_of_source(reach: Reached, number: Id) -> Response:
    """Return the rate limits and states of the hosts of one source."""
    return reach.reply(await reach.kb.charts.politeness(await reach.source(number)))


@charts_router.get("/sources/{number}/ahead", response_model=UpcomingChecks)
async def ahead_of_source(reach: Reached, number: Id) -> Response:
    """How many pages are due now, in each of the next 48 hours, and later."""
    return reach.reply(await reach.kb.charts.checks_ahead(await reach.source(number)))


@charts_router.get("/sources/{number}/receipt", response_model=RunSavings)
async def receipt_of_source(reach: Reached, number: Id) -> Response:
    """How fresh a source is, and what its last run cost and saved."""
    return reach.reply(await reach.kb.sources.receipt(await reach.source(number)))
