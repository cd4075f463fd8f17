"""Web pages of sources: the overview, and each source with its pages, changes, links, runs, charts and copies."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from afresh.errors import RunBusy
from afresh.model.filters import LinkFilter, PageFilter, Sources
from afresh.model.overview import SourceOverview
from afresh.model.records import ChangeKind, PageStatus, Source
from afresh.model.reports import RunReport
from afresh.server.listing import link_cursor, make_cursor, read_link, read_number
from afresh.server.requests import Context, Cursor, ListWindow, OneSource, RequestContext
from afresh.server.web.frame import Changes, Choice, Filter, Items, PageRoute, redirect, show
from afresh.server.web.runs import is_active
from afresh.sync.reconcile import CONTENT

router = APIRouter(include_in_schema=False, route_class=PageRoute)

TABS = (
    ("", "Pages"),
    ("changes", "Changes"),
    ("links", "Links"),
    ("runs", "Runs"),
    ("charts", "Charts"),
    ("map", "Map"),
    ("copies", "External stores"),
    ("settings", "Settings"),
)
MAX_SOURCES_LISTED = 24  # sources in one part; fewer, since each needs its own query and some kilobytes
MAX_RUNS_CHARTED = 40
MAX_MAP_PAGES_LISTED = 200
Depth = Annotated[int, Field(ge=0, le=1_000_000)]
Score = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


async def show_tab(
    ctx: RequestContext, source: Source, tab: str, queries: Mapping[str, Awaitable[object]], **given: object
) -> Response:
    """Return the page of a source with the chosen tab; run the `queries` for its content concurrently."""
    live = await ctx.kb.runs.live(lambda label: label == source.label)  # fetched before the source itself
    overviews, found = await asyncio.gather(ctx.kb.sources.overviews([source]), asyncio.gather(*queries.values()))
    given |= {"overview": overviews[0], **dict(zip(queries, found, strict=True))}
    given["live"] = [each for each in live if is_active(each)]
    return show(ctx.request, f"source_{tab or 'pages'}.html", source=source, tabs=TABS, tab=tab, **given)


@router.get("/sources/{number}")
async def pages(
    ctx: Context,
    source: OneSource,
    window: Items,
    text: Filter = None,
    status: Choice[PageStatus] = None,
    language: Filter = None,
    depth: Choice[Depth] = None,
    doubtful: Filter = None,
) -> Response:
    which = PageFilter(status=status, doubtful=bool(doubtful), language=language, depth=depth, text=text)
    found = ctx.kb.pages.records([source.id], which, after=window.number or 0, limit=window.wanted)
    return await show_tab(ctx, source, "", {"listed": window.of(found)}, statuses=list(PageStatus))


@router.get("/sources/{number}/changes")
async def changes(ctx: Context, source: OneSource, window: Changes, kind: Choice[ChangeKind] = None) -> Response:
    return await show_tab(ctx, source, "changes", {"listed": _changes(ctx, [source.id], kind, window)})


@router.get("/sources/{number}/links")
async def links(
    ctx: Context, source: OneSource, window: Items, keyword: Filter = None, least: Choice[Score] = None
) -> Response:
    which, after = LinkFilter(keyword=keyword, min_score=least), read_link(window.cursor)
    found = ctx.kb.links.records([source.id], which, after=after, limit=window.wanted)
    return await show_tab(ctx, source, "links", {"listed": window.of(found, link_cursor)})


@router.get("/sources/{number}/runs")
async def runs(ctx: Context, source: OneSource, window: Items) -> Response:
    found = ctx.kb.runs.records([source.id], below=window.number, limit=window.wanted)
    return await show_tab(ctx, source, "runs", {"listed": window.of(found, lambda run: make_cursor(run.run))})


@router.get("/sources/{number}/copies")
async def copies(
    ctx: Context, source: OneSource, window: Items, sink: Filter = None, state: Choice[PageStatus] = None
) -> Response:
    after, names = window.number or 0, ctx.kb.sinks.names(source)
    chosen = sink or (names[0] if names else "")
    queries: dict[str, Awaitable[object]] = {"sinks": ctx.kb.sinks.views([source])}
    if names:
        found = ctx.kb.sinks.copies(source, chosen, state=state, after=after, limit=window.wanted)
        queries["listed"] = window.of(found)
    return await show_tab(ctx, source, "copies", queries, chosen=chosen, states=CONTENT)


@router.post("/sources/{number}/refresh")
async def refresh(ctx: Context, source: OneSource) -> Response:
    try:
        number: int | None = (await ctx.kb.runs.start(source)).run
    except RunBusy as busy:  # another request or a second click has started a run: show that run
        if (number := busy.run) is None:
            raise
    return redirect(f"/runs/{number}")


@router.get("/changes")
async def every_change(ctx: Context, window: Changes, kind: Choice[ChangeKind] = None) -> Response:
    return show(ctx.request, "changes.html", listed=await _changes(ctx, None, kind, window))


async def _changes(
    ctx: RequestContext, sources: Sources, kind: ChangeKind | None, window: ListWindow
) -> dict[str, object]:
    found = ctx.kb.pages.changes(sources=sources, kind=kind, below=window.number, limit=window.wanted)
    return await window.of(found)


@router.get("/")
async def overview(ctx: Context, text: Filter = None, removed: Filter = None, after: Cursor = None) -> Response:
    live = await ctx.kb.runs.live(ctx.allowed.sees)  # first, so that a run that ends meanwhile is shown as ended
    visible = await ctx.kb.sources.all()
    words = (text or "").casefold()
    fitting = [source for source in visible if words in f"{source.label} {source.url}".casefold()]
    first = min(read_number(after) or 0, len(fitting))
    last = first + MAX_SOURCES_LISTED
    here = fitting[first:last]
    overviews = await ctx.kb.sources.overviews(here)
    return show(
        ctx.request,
        "overview.html",
        live=live,
        totals=await _totals(ctx, overviews, is_whole=len(here) == len(visible)),
        sparks=await ctx.kb.charts.recent_changes([source.id for source in here]),
        number=len(visible),
        listed={"items": overviews, "next": make_cursor(last) if len(fitting) > last else None},
        removed=removed if ctx.request.headers.get("sec-fetch-site") == "same-origin" else None,
    )


async def _totals(ctx: RequestContext, overviews: Sequence[SourceOverview], *, is_whole: bool) -> Mapping[str, int]:
    """Return the totals of all visible sources: from `overviews` if these are all (`is_whole`), else from the store."""
    if not is_whole:
        return await ctx.kb.status.sums() if ctx.allowed.everywhere else {}
    return {
        "pages": sum(each.view.pages for each in overviews),
        "chunks": sum(each.view.chunks for each in overviews),
        "due": sum(each.due for each in overviews),
        "errors": sum(each.view.errors for each in overviews),
    }


@router.get("/sources/{number}/pictures")  # earlier versions used this name in links
@router.get("/sources/{number}/charts")
async def charts(ctx: Context, source: OneSource) -> Response:
    async def reports() -> list[RunReport]:
        found = await ctx.kb.runs.records([source.id], below=None, limit=MAX_RUNS_CHARTED)
        return [report for report in reversed(found) if report.checked]

    queries = {
        "days": ctx.kb.charts.calendar([source.id]),
        "reports": reports(),
        "checks": ctx.kb.charts.checks_ahead(source),
        "politeness": ctx.kb.charts.politeness(source),
    }
    return await show_tab(ctx, source, "charts", queries)


@router.get("/sources/{number}/map")
async def site_map(ctx: Context, source: OneSource) -> Response:
    """Show the map of a source; a script on the page fetches the data."""
    return await show_tab(ctx, source, "map", {"map": ctx.kb.charts.site_map(source, limit=MAX_MAP_PAGES_LISTED)})
