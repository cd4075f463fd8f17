"""Pictures of a source: when it changed, what runs found, what is due, its hosts, and its map."""

from fastapi import APIRouter, Request, Response

from afresh.model.records import Source
from afresh.model.reports import RunReport
from afresh.server.parts import Id
from afresh.server.request_context import Reach, Reached
from afresh.server.web.frame import PageRoute
from afresh.server.web.sources import show_tab

router = APIRouter(include_in_schema=False, route_class=PageRoute)
RUNS = 40  # of the charts
LISTED = 200  # pages of the map that are also a list


@router.get("/sources/{number}/pictures")
async def pictures(request: Request, reach: Reached, number: Id) -> Response:
    """When it changed, what runs found, and what comes next."""
    source = await reach.source(number)
    looked_up = {
        "days": reach.kb.charts.calendar([source.id]),
        "reports": _runs(reach, source),
        "looks": reach.kb.charts.checks_ahead(source),
        "manners": reach.kb.charts.politeness(source),
    }
    return await show_tab(request, reach, source, "pictures", looked_up)


async def _runs(reach: Reach, source: Source) -> list[RunReport]:
    """Those that looked at something, oldest first."""
    reports = await reach.kb.runs.records([source.id], below=None, limit=RUNS)
    return [report for report in reversed(reports) if report.checked]


@router.get("/sources/{number}/map")
async def site_map(request: Request, reach: Reached, number: Id) -> Response:
    """The map of its pages; the data is fetched by the page."""
    source = await reach.source(number)
    return await show_tab(
        request, reach, source, "map", {"map": reach.kb.charts.site_map(source, limit=LISTED)}
    )
