"""Pictures of a source: when it changed, what runs found, what is due, its hosts, and its map."""

from fastapi import APIRouter, Request, Response

from afresh.faces.http.parts import Id
from afresh.faces.http.reach import Reached
from afresh.faces.web.frame import PageRoute
from afresh.faces.web.sources import show_tab

router = APIRouter(include_in_schema=False, route_class=PageRoute)
RUNS = 40  # of the charts
LISTED = 200  # pages of the map that are also a list


@router.get("/sources/{number}/pictures")
async def pictures(request: Request, reach: Reached, number: Id) -> Response:
    """When it changed, what runs found, and what comes next."""
    source = await reach.source(number)
    reports = await reach.kb.run_list([source.id], below=None, limit=RUNS)
    return await show_tab(
        request,
        reach,
        source,
        "pictures",
        days=await reach.kb.calendar([source.id]),
        reports=[report for report in reversed(reports) if report.checked],
        looks=await reach.kb.looks_ahead(source),
        manners=await reach.kb.politeness(source),
    )


@router.get("/sources/{number}/map")
async def site_map(request: Request, reach: Reached, number: Id) -> Response:
    """The map of its pages; the data is fetched by the page."""
    source = await reach.source(number)
    listed = await reach.kb.site_map(source, limit=LISTED)
    return await show_tab(request, reach, source, "map", map=listed)
