"""Web pages of sources: the overview, and each source with pages, changes, links, runs, charts and copies."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

from fastapi import APIRouter, Response

from afresh.errors import RunBusy, UsageError
from afresh.model.filters import LinkFilter, PageFilter, Sources
from afresh.model.overview import SourceOverview
from afresh.model.records import ChangeKind, PageStatus, Source
from afresh.model.reports import RunReport
from afresh.server.listing import by_id, by_worth, number_cursor, read_link, read_number
from afresh.server.requests import Id, Reached, RequestContext
from afresh.server.web.frame import (
    CHANGES,
    SHOWN,
    Cursor,
    Filter,
    PageRoute,
    number_in,
    one_of,
    part,
    show,
    to,
)
from afresh.server.web.rendered import cut_for
from afresh.server.web.runs import is_going
from afresh.sync.reconcile import CONTENT

router = APIRouter(include_in_schema=False, route_class=PageRoute)

TABS = (
    ("", "Pages"),
    ("changes", "Changes"),
    ("links", "Links"),
    ("runs", "Runs"),
    ("pictures", "Pictures"),
    ("map", "Map"),
    ("copies", "Copies"),
    ("settings", "Settings"),
)


async def show_tab(
    reach: RequestContext,
    source: Source,
    tab: str,
    looked_up: Mapping[str, Awaitable[object]],
    **given: object,
) -> Response:
    """Return a tab of a source; `looked_up` runs concurrently."""
    live = await reach.kb.runs.live(lambda label: label == source.label)  # fetched before the source itself
    glances, found = await asyncio.gather(
        reach.kb.sources.overviews([source]), asyncio.gather(*looked_up.values())
    )
    given |= {"glance": glances[0], **dict(zip(looked_up, found, strict=True))}
    given["live"] = [each for each in live if is_going(each)]
    template = f"source_{tab or 'pages'}.html"
    return show(reach.request, template, source=source, tabs=TABS, tab=tab, **given)


@router.get("/sources/{number}")
async def pages(
    reach: Reached,
    number: Id,
    text: Filter = "",
    status: Filter = "",
    language: Filter = "",
    depth: Filter = "",
    doubtful: Filter = "",
    after: Cursor = None,
) -> Response:
    source = await reach.source(number)
    which = PageFilter(
        status=one_of(PageStatus, "status", status),
        doubtful=bool(doubtful),
        language=language.strip() or None,
        depth=number_in("depth", depth),
        text=text.strip() or None,
    )
    asked = {"text": text, "status": status, "language": language, "depth": depth, "doubtful": doubtful}
    given = {"asked": asked, "statuses": list(PageStatus)}
    behind = read_number(after) or 0
    found = reach.kb.pages.records([source.id], which, after=behind, limit=SHOWN + 1)
    return await show_tab(reach, source, "", {"listed": part(found, by_id)}, **given)


@router.get("/sources/{number}/changes")
async def changes(
    reach: Reached, number: Id, view: Filter = "", kind: Filter = "", after: Cursor = None
) -> Response:
    source = await reach.source(number)
    listed = {"listed": _changes(reach, [source.id], kind, after)}
    return await show_tab(reach, source, "changes", listed, view=view, cut=cut_for(view), kind=kind)


@router.get("/sources/{number}/links")
async def links(
    reach: Reached, number: Id, keyword: Filter = "", least: Filter = "", after: Cursor = None
) -> Response:
    source = await reach.source(number)
    which = LinkFilter(keyword=keyword.strip() or None, min_score=_score(least))
    behind, asked = read_link(after), {"keyword": keyword, "least": least}
    found = reach.kb.links.records([source.id], which, after=behind, limit=SHOWN + 1)
    return await show_tab(reach, source, "links", {"listed": part(found, by_worth)}, asked=asked)


@router.get("/sources/{number}/runs")
async def runs(reach: Reached, number: Id, after: Cursor = None) -> Response:
    source = await reach.source(number)
    found = reach.kb.runs.records([source.id], below=read_number(after), limit=SHOWN + 1)
    listed = part(found, lambda run: number_cursor(run.run))
    return await show_tab(reach, source, "runs", {"listed": listed})


@router.get("/sources/{number}/copies")
async def copies(
    reach: Reached, number: Id, sink: Filter = "", state: Filter = "", after: Cursor = None
) -> Response:
    source = await reach.source(number)
    only, behind = one_of(PageStatus, "state", state), read_number(after) or 0
    names = reach.kb.sinks.names(source)
    chosen = sink or (names[0] if names else "")
    looked_up: dict[str, Awaitable[object]] = {"sinks": reach.kb.sinks.views([source])}
    if names:
        found = reach.kb.sinks.copies(source, chosen, state=only, after=behind, limit=SHOWN + 1)
        looked_up["listed"] = part(found, by_id)
    given = {"chosen": chosen, "state": state, "states": CONTENT}
    return await show_tab(reach, source, "copies", looked_up, **given)


@router.post("/sources/{number}/refresh")
async def refresh(reach: Reached, number: Id) -> Response:
    source = await reach.source(number)
    try:
        number = (await reach.kb.runs.start(source)).run
    except RunBusy as busy:  # another request or a second click was first: show its run
        if busy.run is None:
            raise
        number = busy.run
    return to(f"/runs/{number}")


@router.get("/changes")
async def every_change(
    reach: Reached, view: Filter = "", kind: Filter = "", after: Cursor = None
) -> Response:
    listed = await _changes(reach, None, kind, after)
    return show(reach.request, "changes.html", listed=listed, view=view, cut=cut_for(view), kind=kind)


async def _changes(
    reach: RequestContext, sources: Sources, kind: str, after: str | None
) -> dict[str, object]:
    only, below = one_of(ChangeKind, "kind", kind), read_number(after)
    return await part(
        reach.kb.pages.changes(sources=sources, kind=only, below=below, limit=CHANGES + 1), by_id, CHANGES
    )


def _score(typed: str) -> float | None:
    try:
        found = float(typed) if typed.strip() else None
    except ValueError:
        found = -1.0
    if found is not None and not 0 <= found <= 1_000:
        raise UsageError(f"least: expected a number from 0 on, got {typed[:50]!r}")
    return found


MAX_SOURCES_SHOWN = 24  # in one part: each needs its own query and some kilobytes


@router.get("/")
async def overview(reach: Reached, text: Filter = "", removed: Filter = "", after: Cursor = None) -> Response:
    live = await reach.kb.runs.live(reach.allowed.sees)  # first: a run that ends meanwhile is shown as ended
    visible = await reach.kb.sources.all()
    words = text.strip().casefold()
    fitting = [source for source in visible if words in f"{source.label} {source.url}".casefold()]
    first = min(read_number(after) or 0, len(fitting))
    here = fitting[first : first + MAX_SOURCES_SHOWN]
    glances = await reach.kb.sources.overviews(here)
    sparks = await reach.kb.charts.recent_changes([source.id for source in here])
    more = number_cursor(first + MAX_SOURCES_SHOWN) if len(fitting) > first + MAX_SOURCES_SHOWN else None
    return show(
        reach.request,
        "overview.html",
        glances=glances,
        live=live,
        totals=await _totals(reach, glances, whole=len(here) == len(visible)),
        sparks=sparks,
        number=len(visible),
        listed={"items": glances, "more": more},
        text=text,
        removed=removed if reach.request.headers.get("sec-fetch-site") == "same-origin" else "",
    )


async def _totals(
    reach: RequestContext, glances: Sequence[SourceOverview], *, whole: bool
) -> Mapping[str, int]:
    """Return totals of all sources; if only some are shown, totals of the store."""
    if not whole:
        return await reach.kb.status.sums() if reach.allowed.everywhere else {}
    return {
        "pages": sum(each.view.pages for each in glances),
        "chunks": sum(each.view.chunks for each in glances),
        "due": sum(each.due for each in glances),
        "errors": sum(each.view.errors for each in glances),
    }


RUNS = 40  # in the charts
LISTED = 200  # pages of the map that are also listed


@router.get("/sources/{number}/pictures")
async def pictures(reach: Reached, number: Id) -> Response:
    source = await reach.source(number)

    async def reports() -> list[RunReport]:
        found = await reach.kb.runs.records([source.id], below=None, limit=RUNS)
        return [report for report in reversed(found) if report.checked]

    looked_up = {
        "days": reach.kb.charts.calendar([source.id]),
        "reports": reports(),
        "looks": reach.kb.charts.checks_ahead(source),
        "manners": reach.kb.charts.politeness(source),
    }
    return await show_tab(reach, source, "pictures", looked_up)


@router.get("/sources/{number}/map")
async def site_map(reach: Reached, number: Id) -> Response:
    """Show the map of a source; the page fetches the data."""
    source = await reach.source(number)
    return await show_tab(reach, source, "map", {"map": reach.kb.charts.site_map(source, limit=LISTED)})
