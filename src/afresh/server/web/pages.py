"""Web pages of one stored page: its text, passages, links, attempts, versions and explanation."""

from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from afresh.errors import NotFound, UsageError
from afresh.model.filters import ALL_PAGES, LinkFilter
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.server.listing import link_cursor, read_link
from afresh.server.requests import Address, Context, Id, Label, RequestContext
from afresh.server.web.frame import Changes, Filter, Items, PageRoute, redirect, show
from afresh.server.web.rendered import rendered, safe_address

router = APIRouter(include_in_schema=False, route_class=PageRoute)
TABS = (("", "Text"), ("passages", "Passages"), ("links", "Links"), ("attempts", "Attempts"), ("versions", "Versions"))


@router.get("/open")
async def find(
    ctx: Context,
    url: Annotated[Address, Query()],
    within: Annotated[Label, Query(alias="in")],
    part: Literal["", "versions"] = "",
    view: Filter = None,
) -> Response:
    sources = [each.id for each in await ctx.kb.sources.all() if each.label == within]
    found = await ctx.kb.pages.records(sources, ALL_PAGES, url=url, limit=1) if sources else []
    if not found:
        raise NotFound(f"{within} has no page {url}")
    place = f"/pages/{found[0].id}/{part}".rstrip("/")
    return redirect(f"{place}?{urlencode({'view': view})}" if view else place)


@router.get("/pages/{number}")
async def text(ctx: Context, number: Id) -> Response:
    page, source = await ctx.page(number)
    opened, body, missing = None, "", None
    try:
        opened = await ctx.kb.pages.open(page.url, within=source.label)
        body = rendered(opened.markdown, opened.url)
    except UsageError as error:
        missing = str(error)
    return await _tab(ctx, page, source, "", opened=opened, body=body, missing=missing)


@router.post("/pages/{number}/restore")
async def restore(ctx: Context, number: Id) -> Response:
    page, source = await ctx.page(number)
    with suppress(NotFound):  # already restored, such as by a second click
        await ctx.kb.pages.restore(page.url, within=source.label)
    return redirect(f"/pages/{number}")


@router.get("/pages/{number}/passages")
async def passages(ctx: Context, number: Id) -> Response:
    page, source = await ctx.page(number)
    found = await ctx.kb.pages.passages(number)
    return await _tab(ctx, page, source, "passages", passages=found[:200], many=len(found))


@router.get("/pages/{number}/links")
async def links(ctx: Context, number: Id, window: Items) -> Response:
    page, source = await ctx.page(number)
    after, here = read_link(window.cursor), LinkFilter(page=page.id)
    listed = await window.of(ctx.kb.links.records([source.id], here, after=after, limit=window.wanted), link_cursor)
    to_it = await ctx.kb.links.records([source.id], LinkFilter(url=page.url), limit=1)
    return await _tab(ctx, page, source, "links", listed=listed, to_it=to_it)


@router.get("/pages/{number}/attempts")
async def attempts(ctx: Context, number: Id, window: Items) -> Response:
    page, source = await ctx.page(number)
    found = ctx.kb.pages.attempts(number, below=window.number, limit=window.wanted)
    return await _tab(ctx, page, source, "attempts", listed=await window.of(found))


@router.get("/pages/{number}/versions")
async def versions(ctx: Context, number: Id, window: Changes) -> Response:
    page, source = await ctx.page(number)
    found = ctx.kb.pages.changes(sources=[source.id], url=page.url, below=window.number, limit=window.wanted)
    return await _tab(ctx, page, source, "versions", listed=await window.of(found))


async def _tab(ctx: RequestContext, page: PageView, source: Source, tab: str, **given: object) -> Response:
    why = await ctx.kb.pages.explain(page.url, within=source.label)
    given |= {"page": page, "source": source, "why": why, "tabs": TABS, "tab": tab}
    return show(ctx.request, f"page_{tab or 'text'}.html", there=safe_address(page.url), **given)
