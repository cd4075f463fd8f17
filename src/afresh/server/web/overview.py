"""The overview: every source at a glance."""

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Request, Response

from afresh.model.overview import SourceGlance
from afresh.model.records import Source
from afresh.server.cursors import number_cursor, read_number
from afresh.server.request_context import Reach, Reached
from afresh.server.web.frame import PageRoute, show
from afresh.server.web.listing import Cursor, Filter

router = APIRouter(include_in_schema=False, route_class=PageRoute)
SHOWN = 24  # sources of one part: each is looked up by itself, and some kilobytes of page


@router.get("/")
async def overview(
    request: Request, reach: Reached, text: Filter = "", removed: Filter = "", after: Cursor = None
) -> Response:
    """Every source at a glance, those of one part at a time."""
    live = await reach.kb.runs.live(reach.allowed.sees)  # first: what ends meanwhile is seen to have ended
    visible = await reach.visible()
    fitting = [source for source in visible if _fits(source, text.strip().casefold())]
    first = min(read_number(after) or 0, len(fitting))
    here = fitting[first : first + SHOWN]
    glances = await reach.kb.sources.overviews(here)
    sparks = await reach.kb.charts.recent_changes([source.id for source in here])
    more = number_cursor(first + SHOWN) if len(fitting) > first + SHOWN else None
    return show(
        request,
        "overview.html",
        glances=glances,
        live=live,
        totals=await _totals(reach, glances, whole=len(here) == len(visible)),
        sparks=sparks,
        number=len(visible),
        listed={"items": glances, "more": more},
        text=text,
        removed=removed if request.headers.get("sec-fetch-site") == "same-origin" else "",
    )


async def _totals(reach: Reach, glances: Sequence[SourceGlance], *, whole: bool) -> Mapping[str, int]:
    """What all sources come to; where only a part of them is shown, as far as the store knows it."""
    if not whole:
        return await reach.kb.status.sums() if reach.allowed.everywhere else {}
    return {
        "pages": sum(each.view.pages for each in glances),
        "chunks": sum(each.view.chunks for each in glances),
        "due": sum(each.due for each in glances),
        "errors": sum(each.view.errors for each in glances),
    }


def _fits(source: Source, words: str) -> bool:
    return words in f"{source.label} {source.url}".casefold()
