"""REST routes of links, joined with the pages they are on."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from afresh.dataclass import replace
from afresh.model.filters import LinkFilter, LinkRecord
from afresh.model.records import PageId
from afresh.server.listing import MAX_ID, Listing, link_cursor, read_link
from afresh.server.replies import IdempotentRoute, Key, made
from afresh.server.requests import Address, Context, Id, OfSource, RequestBody, Window

router = APIRouter(tags=["links"], route_class=IdempotentRoute)
KeywordScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


async def _filter(
    url: Annotated[str | None, Query(max_length=2_000, description="Only the link to this URL.")] = None,
    keyword: Annotated[str | None, Query(max_length=200, description="Only links with this keyword.")] = None,
    min_score: Annotated[
        float | None, Query(ge=0, le=1_000, allow_inf_nan=False, description="Only links with at least this score.")
    ] = None,
) -> LinkFilter:
    return LinkFilter(url=url, keyword=keyword, min_score=min_score)


Filter = Annotated[LinkFilter, Depends(_filter)]


class NewLink(RequestBody):
    """A link to put on a page."""

    page_id: int = Field(ge=1, le=MAX_ID)
    url: Address
    text: Annotated[str, Field(max_length=1_000)] = ""


class ChangedLink(RequestBody):
    """The score, comment and keywords of a link."""

    score: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    comment: Annotated[str, Field(max_length=2_000)] | None = None
    keywords: (
        Annotated[
            dict[Annotated[str, Field(max_length=100)], KeywordScore],
            Field(
                max_length=200,
                description="The score of each keyword. Without `score`, the total is computed from these.",
            ),
        ]
        | None
    ) = None


@router.get("/links", response_model=Listing[LinkRecord])
async def list_links(
    ctx: Context,
    window: Window,
    which: Filter,
    source: OfSource = None,
    page: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only on the page with this id.")] = None,
) -> Response:
    """List links with the pages they are on, best score first; with the filter `url`, at most one link per source."""
    if page is not None:
        await ctx.page(page)
        which = replace(which, page=PageId(page))
    after, sources = read_link(window.cursor), await ctx.sources(source)
    found = ctx.kb.links.records(sources, which, after=after, limit=window.wanted)
    return ctx.reply(await window.of(found, link_cursor))


@router.get("/sources/{number}/links", response_model=Listing[LinkRecord])
async def links_of_source(ctx: Context, window: Window, which: Filter, number: Id) -> Response:
    """List the links of one source."""
    return await list_links(ctx, window, which, number)


@router.get("/pages/{number}/links", response_model=Listing[LinkRecord])
async def links_of_page(ctx: Context, window: Window, which: Filter, number: Id) -> Response:
    """List the links of one page."""
    return await list_links(ctx, window, which, page=number)


@router.post("/links", status_code=201, response_model=LinkRecord)
async def add_link(ctx: Context, body: NewLink, key: Key = None) -> Response:
    """Add a link to a page. The link stays until the links of that page change."""
    await ctx.page(body.page_id)
    link = await ctx.kb.links.add(body.page_id, body.url, body.text)
    return made(link, 201, f"/api/v1/links/{link.id}")


@router.get("/links/{number}", response_model=LinkRecord)
async def show_link(ctx: Context, number: Id) -> Response:
    """Return one link with the pages it is on."""
    return ctx.reply(await ctx.kb.links.get(number))


@router.patch("/links/{number}", response_model=LinkRecord)
async def change_link(ctx: Context, number: Id, body: ChangedLink) -> Response:
    """Set score, keywords or comment of a link. They stay until the link is scored again."""
    link = await ctx.kb.links.get(number)
    given = body.model_fields_set
    score = body.score if "score" in given or body.keywords is not None else link.score
    comment = body.comment if "comment" in given else link.comment
    return made(await ctx.kb.links.set_worth(number, score, comment, body.keywords), 200)


@router.delete("/links/{number}", status_code=204)
async def remove_link(ctx: Context, number: Id) -> Response:
    """Remove a link from all pages. It is stored again if the links of a page that contains it change."""
    await ctx.kb.links.remove(number)
    return Response(status_code=204)
