"""What pictures are drawn from: changes by day, the map of a site, its hosts, what runs saved."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from afresh.model.charts import Calendar, LooksAhead, Politeness, Receipt, SiteMap
from afresh.server.api.replies import packed, reply
from afresh.server.parts import Id
from afresh.server.request_context import Reached
from afresh.services.charts import NODES, YEAR

router = APIRouter(tags=["pictures"])
Days = Annotated[int, Query(ge=1, le=3_700, description="How many days back, today included.")]
Nodes = Annotated[int, Query(ge=1, le=NODES, description="How many pages at most.")]


@router.get("/calendar", response_model=Calendar)
async def calendar(request: Request, reach: Reached, days: Days = YEAR) -> Response:
    """How many changes each day brought to all sources, by kind; days without any are left out."""
    return reply(request, await reach.kb.charts.calendar(await reach.sources(), days=days))


@router.get("/sources/{number}/calendar", response_model=Calendar)
async def calendar_of_source(request: Request, reach: Reached, number: Id, days: Days = YEAR) -> Response:
    """How many changes each day brought to one source, by kind."""
    return reply(request, await reach.kb.charts.calendar(await reach.sources(number), days=days))


@router.get("/sources/{number}/map", response_model=SiteMap)
async def map_of_source(request: Request, reach: Reached, number: Id, limit: Nodes = NODES) -> Response:
    """The pages of a source and the links between them, those nearest to the root first."""
    drawn = await reach.kb.charts.site_map(await reach.source(number), limit=limit)
    return packed(request, reply(request, drawn))


@router.get("/hosts", response_model=Politeness)
async def hosts(request: Request, reach: Reached) -> Response:
    """How hosts are asked, what waits for them, and which rest."""
    reach.allowed.check_everywhere()
    return reply(request, await reach.kb.charts.politeness())


@router.get("/sources/{number}/hosts", response_model=Politeness)
async def hosts_of_source(request: Request, reach: Reached, number: Id) -> Response:
    """The same for the hosts of one source."""
    return reply(request, await reach.kb.charts.politeness(await reach.source(number)))


@router.get("/sources/{number}/ahead", response_model=LooksAhead)
async def ahead_of_source(request: Request, reach: Reached, number: Id) -> Response:
    """How many pages are due now, in each of the next 48 hours, and later."""
    return reply(request, await reach.kb.charts.checks_ahead(await reach.source(number)))


@router.get("/sources/{number}/receipt", response_model=Receipt)
async def receipt_of_source(request: Request, reach: Reached, number: Id) -> Response:
    """How fresh a source is, and what its last run cost and saved."""
    return reply(request, await reach.kb.sources.receipt(await reach.source(number)))
