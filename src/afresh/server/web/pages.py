"""Web pages of one stored page: its text, passages, links, attempts, versions and explanation."""

from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from afresh.errors import NotFound, UsageError
from afresh.model.filters import ALL_PAGES, LinkFilter
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.server.listing import by_id, by_worth, read_link, read_number
from afresh.server.requests import Address, Id, Label, Reached, RequestContext
from afresh.server.web.frame import CHANGES, SHOWN, Cursor, Filter, PageRoute, part, show, to
from afresh.server.web.rendered import cut_for, rendered, safe_address

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
    sources = [each.id for each in await reach.kb.sources.all() if each.label == within]
    found = await reach.kb.pages.records(sources, ALL_PAGES, url=url, limit=1) if sources else []
    if not found:
        raise NotFound(f"{within} holds no page {url}")
    place = f"/pages/{found[0].id}/{part}".rstrip("/")
    return to(f"{place}?{urlencode({'view': view})}" if view else place)


@router.get("/pages/{number}")
async def text(reach: Reached, number: Id) -> Response:
    page, source = await reach.page(number)
    opened, body, missing = None, "", None
    try:
        opened = await reach.kb.pages.open(page.url, within=source.label)
        body = rendered(opened.markdown, opened.url)
    except UsageError as error:
        missing = str(error)
    return await _tab(reach, page, source, "", opened=opened, body=body, missing=missing)


@router.post("/pages/{number}/restore")
async def restore(reach: Reached, number: Id) -> Response:
    page, source = await reach.page(number)
    with suppress(NotFound):  # already restored, such as by a second click
        await reach.kb.pages.restore(page.url, within=source.label)
    return to(f"/pages/{number}")


@router.get("/pages/{number}/passages")
async def passages(reach: Reached, number: Id) -> Response:
    page, source = await reach.page(number)
    found = await reach.kb.pages.passages(number)
    return await _tab(reach, page, source, "passages", passages=found[:200], many=len(found))


@router.get("/pages/{number}/links")
async def links(reach: Reached, number: Id, after: Cursor = None) -> Response:
    page, source = await reach.page(number)
    which, behind = LinkFilter(page=page.id), read_link(after)
    listed = await part(reach.kb.links.records([source.id], which, after=behind, limit=SHOWN + 1), by_worth)
    to_it = await reach.kb.links.records([source.id], LinkFilter(url=page.url), limit=1)
    return await _tab(reach, page, source, "links", listed=listed, to_it=to_it)


@router.get("/pages/{number}/attempts")
async def attempts(reach: Reached, number: Id, after: Cursor = None) -> Response:
    page, source = await reach.page(number)
    below = read_number(after)
    listed = await part(reach.kb.pages.attempts(number, below=below, limit=SHOWN + 1), by_id)
    return await _tab(reach, page, source, "attempts", listed=listed)


@router.get("/pages/{number}/versions")
async def versions(reach: Reached, number: Id, view: Filter = "", after: Cursor = None) -> Response:
    page, source = await reach.page(number)
    below = read_number(after)
    found = reach.kb.pages.changes(sources=[source.id], url=page.url, below=below, limit=CHANGES + 1)
    listed = await part(found, by_id, CHANGES)
    return await _tab(reach, page, source, "versions", listed=listed, view=view, cut=cut_for(view))


async def _tab(reach: RequestContext, page: PageView, source: Source, tab: str, **given: object) -> Response:
    why = await reach.kb.pages.explain(page.url, within=source.label)
    given |= {"page": page, "source": source, "why": why, "tabs": TABS, "tab": tab}
    return show(reach.request, f"page_{tab or 'text'}.html", there=safe_address(page.url), **given)
