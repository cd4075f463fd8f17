"""One page: its text, passages, links, attempts and versions, and why it is as it is."""

from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from afresh.errors import Unknown, UsageError
from afresh.model.filters import ALL_PAGES, LinkFilter
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.server.cursors import read_link, read_number
from afresh.server.listing import by_id, by_worth
from afresh.server.parts import Address, Id, Label
from afresh.server.request_context import Reach, Reached
from afresh.server.web.diffs import cut_for
from afresh.server.web.frame import PageRoute, show, to
from afresh.server.web.listing import CHANGES, SHOWN, Cursor, Filter, part
from afresh.server.web.rendered import rendered, safe_address

router = APIRouter(include_in_schema=False, route_class=PageRoute)
TABS = (
    ("", "Text"),
    ("passages", "Passages"),
    ("links", "Links"),
    ("attempts", "Attempts"),
    ("versions", "Versions"),
)


@router.get("/open")
async def find(
    reach: Reached,
    url: Annotated[Address, Query()],
    within: Annotated[Label, Query(alias="in")],
    part: Literal["", "versions"] = "",
    view: Filter = "",
) -> Response:
    """Where the page with an address stands."""
    sources = [each.id for each in await reach.visible() if each.label == within]
    found = await reach.kb.pages.records(sources, ALL_PAGES, url=url, limit=1) if sources else []
    if not found:
        raise Unknown(f"{within} holds no page {url}")
    place = f"/pages/{found[0].id}/{part}".rstrip("/")
    return to(f"{place}?{urlencode({'view': view})}" if view else place)


@router.get("/pages/{number}")
async def text(request: Request, reach: Reached, number: Id) -> Response:
    """Its text, as Markdown means it."""
    page, source = await reach.page(number)
    opened, body, missing = None, "", None
    try:
        opened = await reach.kb.pages.open(page.url, within=source.label)
        body = rendered(opened.markdown, opened.url)
    except UsageError as error:
        missing = str(error)
    return await _tab(request, reach, page, source, "", opened=opened, body=body, missing=missing)


@router.post("/pages/{number}/restore")
async def restore(reach: Reached, number: Id) -> Response:
    """Put back the text that it had before it lost nearly all of it."""
    page, source = await reach.page(number)
    with suppress(Unknown):  # by a press before: that it is back is what they see
        await reach.kb.pages.restore(page.url, within=source.label)
    return to(f"/pages/{number}")


@router.get("/pages/{number}/passages")
async def passages(request: Request, reach: Reached, number: Id) -> Response:
    """The pieces that are searched."""
    page, source = await reach.page(number)
    found = await reach.kb.pages.passages(number)
    return await _tab(request, reach, page, source, "passages", passages=found[:200], many=len(found))


@router.get("/pages/{number}/links")
async def links(request: Request, reach: Reached, number: Id, after: Cursor = None) -> Response:
    """Where it leads, and what leads to it."""
    page, source = await reach.page(number)
    which, behind = LinkFilter(page=page.id), read_link(after)
    listed = await part(reach.kb.links.records([source.id], which, after=behind, limit=SHOWN + 1), by_worth)
    to_it = await reach.kb.links.records([source.id], LinkFilter(url=page.url), limit=1)
    return await _tab(request, reach, page, source, "links", listed=listed, to_it=to_it)


@router.get("/pages/{number}/attempts")
async def attempts(request: Request, reach: Reached, number: Id, after: Cursor = None) -> Response:
    """Every attempt to look at it, newest first."""
    page, source = await reach.page(number)
    below = read_number(after)
    listed = await part(reach.kb.pages.attempts(number, below=below, limit=SHOWN + 1), by_id)
    return await _tab(request, reach, page, source, "attempts", listed=listed)


@router.get("/pages/{number}/versions")
async def versions(
    request: Request, reach: Reached, number: Id, view: Filter = "", after: Cursor = None
) -> Response:
    """How it changed."""
    page, source = await reach.page(number)
    below = read_number(after)
    found = reach.kb.pages.change_records([source.id], url=page.url, below=below, limit=CHANGES + 1)
    listed = await part(found, by_id, CHANGES)
    return await _tab(request, reach, page, source, "versions", listed=listed, view=view, cut=cut_for(view))


async def _tab(
    request: Request, reach: Reach, page: PageView, source: Source, tab: str, **given: object
) -> Response:
    why = await reach.kb.pages.explain(page.url, within=source.label)
    return show(
        request,
        f"page_{tab or 'text'}.html",
        page=page,
        source=source,
        why=why,
        tabs=TABS,
        tab=tab,
        there=safe_address(page.url),
        **given,
    )
