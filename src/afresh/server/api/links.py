"""REST routes of links, joined with the pages they are on."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from afresh.model.filters import LinkFilter, LinkRecord
from afresh.model.records import PageId
from afresh.server.listing import Listing, by_worth, read_link
from afresh.server.replies import IdempotentRoute, Key, made
from afresh.server.requests import LARGEST, Address, Id, OfSource, Parted, Reached, RequestBody

router = APIRouter(tags=["links"], route_class=IdempotentRoute)
Score = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
KeywordScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def asked(
    url: Annotated[str | None, Query(max_length=2_000, description="Just the link to this address.")] = None,
    keyword: Annotated[str | None, Query(max_length=200, description="Only links with this keyword.")] = None,
    min_score: Annotated[
        float | None, Query(ge=0, le=1_000, allow_inf_nan=False, description="Only links worth this much.")
    ] = None,
) -> LinkFilter:
    return LinkFilter(url=url, keyword=keyword, min_score=min_score)


Asked = Annotated[LinkFilter, Depends(asked)]


class NewLink(RequestBody):
    """A link to put on a page."""

    page_id: int = Field(ge=1, le=LARGEST)
    url: Address
    text: Annotated[str, Field(max_length=1_000)] = ""


class ChangedLink(RequestBody):
    """What a link is worth."""

    score: Score | None = None
    comment: Annotated[str, Field(max_length=2_000)] | None = None
    keywords: (
        Annotated[
            dict[Annotated[str, Field(max_length=100)], KeywordScore],
            Field(max_length=200, description="How well each fits; without `score` they make it."),
        ]
        | None
    ) = None


@router.get("/links", response_model=Listing[LinkRecord])
async def list_links(
    reach: Reached,
    part: Parted,
    which: Asked,
    source: OfSource = None,
    page: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only on this page.")] = None,
) -> Response:
    """Links with the pages they stand on, best score first; with `url` none or one of each source."""
    if page is not None:
        await reach.page(page)
    links = await reach.kb.links.records(
        await reach.sources(source),
        replace(which, page=None if page is None else PageId(page)),
        after=read_link(part.cursor),
        limit=part.wanted,
    )
    return reach.reply(part.of(links, by_worth))


@router.get("/sources/{number}/links", response_model=Listing[LinkRecord])
async def links_of_source(reach: Reached, part: Parted, which: Asked, number: Id) -> Response:
    """List the links of one source."""
    return await list_links(reach, part, which, number)


@router.get("/pages/{number}/links", response_model=Listing[LinkRecord])
async def links_of_page(reach: Reached, part: Parted, which: Asked, number: Id) -> Response:
    """List the links of one page."""
    return await list_links(reach, part, which, page=number)


@router.post("/links", status_code=201, response_model=LinkRecord)
async def add_link(reach: Reached, body: NewLink, key: Key = None) -> Response:
    """Put a link on a page; it stays until the links of that page change."""
    await reach.page(body.page_id)
    link = await reach.kb.links.add(body.page_id, body.url, body.text)
    return made(link, 201, f"/api/v1/links/{link.id}")


@router.get("/links/{number}", response_model=LinkRecord)
async def show_link(reach: Reached, number: Id) -> Response:
    """One link with the pages it stands on."""
    return reach.reply(await reach.kb.links.get(number))


@router.patch("/links/{number}", response_model=LinkRecord)
async def change_link(reach: Reached, number: Id, body: ChangedLink) -> Response:
    """Set score, keywords or comment of a link; they stay until it is scored again."""
    link = await reach.kb.links.get(number)
    given = body.model_fields_set
    score = body.score if "score" in given or body.keywords is not None else link.score
    comment = body.comment if "comment" in given else link.comment
    return made(await reach.kb.links.set_worth(number, score, comment, body.keywords), 200)


@router.delete("/links/{number}", status_code=204)
async def remove_link(reach: Reached, number: Id) -> Response:
    """Take a link off its pages; it comes back when the links of one of them change."""
    await reach.kb.links.remove(number)
    return Response(status_code=204)
