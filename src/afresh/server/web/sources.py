"""One source: its pages, changes, links, runs and copies."""

import asyncio
from collections.abc import Awaitable, Mapping

from fastapi import APIRouter, Request, Response

from afresh.errors import RunBusy, UsageError
from afresh.model.filters import LinkFilter, PageFilter, Sources
from afresh.model.records import ChangeKind, PageStatus, Source
from afresh.server.cursors import number_cursor, read_link, read_number
from afresh.server.listing import by_id, by_worth
from afresh.server.parts import Id
from afresh.server.request_context import Reach, Reached
from afresh.server.web.diffs import cut_for
from afresh.server.web.frame import PageRoute, show, to
from afresh.server.web.listing import CHANGES, SHOWN, Cursor, Filter, number_in, one_of, part
from afresh.server.web.live import is_going
from afresh.sync.page_status import CONTENT

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
    request: Request,
    reach: Reach,
    source: Source,
    tab: str,
    looked_up: Mapping[str, Awaitable[object]],
    **given: object,
) -> Response:
    """A tab of a source inside its frame; what is looked up for it is so at once."""
    live = await reach.kb.runs.live(lambda label: label == source.label)  # before the source itself
    glances, found = await asyncio.gather(
        reach.kb.sources.overviews([source]), asyncio.gather(*looked_up.values())
    )
    given |= {"glance": glances[0], **dict(zip(looked_up, found, strict=True))}
    given["live"] = [each for each in live if is_going(each)]
    template = f"source_{tab or 'pages'}.html"
    return show(request, template, source=source, tabs=TABS, tab=tab, **given)


@router.get("/sources/{number}")
async def pages(
    request: Request,
    reach: Reached,
    number: Id,
    text: Filter = "",
    status: Filter = "",
    language: Filter = "",
    depth: Filter = "",
    doubtful: Filter = "",
    after: Cursor = None,
) -> Response:
    """Its pages."""
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
    return await show_tab(request, reach, source, "", {"listed": part(found, by_id)}, **given)


@router.get("/sources/{number}/changes")
async def changes(
    request: Request, reach: Reached, number: Id, view: Filter = "", kind: Filter = "", after: Cursor = None
) -> Response:
    """What changed in it."""
    source = await reach.source(number)
    listed = {"listed": _changes(reach, [source.id], kind, after)}
    return await show_tab(request, reach, source, "changes", listed, view=view, cut=cut_for(view), kind=kind)


@router.get("/sources/{number}/links")
async def links(
    request: Request,
    reach: Reached,
    number: Id,
    keyword: Filter = "",
    least: Filter = "",
    after: Cursor = None,
) -> Response:
    """Its links, best first."""
    source = await reach.source(number)
    which = LinkFilter(keyword=keyword.strip() or None, min_score=_score(least))
    behind, asked = read_link(after), {"keyword": keyword, "least": least}
    found = reach.kb.links.records([source.id], which, after=behind, limit=SHOWN + 1)
    return await show_tab(request, reach, source, "links", {"listed": part(found, by_worth)}, asked=asked)


@router.get("/sources/{number}/runs")
async def runs(request: Request, reach: Reached, number: Id, after: Cursor = None) -> Response:
    """Its runs, newest first."""
    source = await reach.source(number)
    below = read_number(after)
    found = reach.kb.runs.records([source.id], below=below, limit=SHOWN + 1)
    listed = part(found, lambda run: number_cursor(run.run))
    return await show_tab(request, reach, source, "runs", {"listed": listed})


@router.get("/sources/{number}/copies")
async def copies(
    request: Request, reach: Reached, number: Id, sink: Filter = "", state: Filter = "", after: Cursor = None
) -> Response:
    """How it stands in external stores."""
    source = await reach.source(number)
    only, behind = one_of(PageStatus, "state", state), read_number(after) or 0
    names = reach.kb.sinks.names(source)
    chosen = sink or (names[0] if names else "")
    looked_up: dict[str, Awaitable[object]] = {"sinks": reach.kb.sinks.views([source])}
    if names:
        found = reach.kb.sinks.copies(source, chosen, state=only, after=behind, limit=SHOWN + 1)
        looked_up["listed"] = part(found, by_id)
    given = {"chosen": chosen, "state": state, "states": CONTENT}
    return await show_tab(request, reach, source, "copies", looked_up, **given)


@router.post("/sources/{number}/refresh")
async def refresh(reach: Reached, number: Id) -> Response:
    """Start a run of it."""
    source = await reach.source(number)
    try:
        number = (await reach.kb.runs.start(source)).run
    except RunBusy as busy:  # somebody was faster, or pressed twice: that run is what they want to see
        if busy.run is None:
            raise
        number = busy.run
    return to(f"/runs/{number}")


@router.get("/changes")
async def every_change(
    request: Request, reach: Reached, view: Filter = "", kind: Filter = "", after: Cursor = None
) -> Response:
    """What changed anywhere."""
    listed = await _changes(reach, None, kind, after)
    return show(request, "changes.html", listed=listed, view=view, cut=cut_for(view), kind=kind)


async def _changes(reach: Reach, sources: Sources, kind: str, after: str | None) -> dict[str, object]:
    only, below = one_of(ChangeKind, "kind", kind), read_number(after)
    return await part(
        reach.kb.pages.change_records(sources, kind=only, below=below, limit=CHANGES + 1), by_id, CHANGES
    )


def _score(typed: str) -> float | None:
    try:
        found = float(typed) if typed.strip() else None
    except ValueError:
        found = -1.0
    if found is not None and not 0 <= found <= 1_000:
        raise UsageError(f"least: expected a number from 0 on, got {typed[:50]!r}")
    return found
