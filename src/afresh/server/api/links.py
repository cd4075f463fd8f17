"""Links: where pages lead, joined with the pages they stand on."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from afresh.model.filters import LinkFilter, LinkRecord
from afresh.model.records import PageId
from afresh.server.api.replies import made, reply
from afresh.server.cursors import read_link
from afresh.server.idempotency import Key, OnceRoute
from afresh.server.listing import Listing, by_worth, part
from afresh.server.parts import LARGEST, USUAL, Address, Cursor, Id, Limit
from afresh.server.request_context import Reached

router = APIRouter(tags=["links"], route_class=OnceRoute)
Score = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
KeywordScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def asked(
    url: Annotated[str | None, Query(max_length=2_000, description="Just the link to this address.")] = None,
    keyword: Annotated[str | None, Query(max_length=200, description="Only links with this keyword.")] = None,
    min_score: Annotated[
        float | None, Query(ge=0, le=1_000, allow_inf_nan=False, description="Only links worth this much.")
    ] = None,
) -> LinkFilter:
    """Which links a request is after."""
    return LinkFilter(url=url, keyword=keyword, min_score=min_score)


Asked = Annotated[LinkFilter, Depends(asked)]


class NewLink(BaseModel):
    """A link to put on a page."""

    model_config = ConfigDict(extra="forbid")

    page_id: int = Field(ge=1, le=LARGEST)
    url: Address
    text: Annotated[str, Field(max_length=1_000)] = ""


class ChangedLink(BaseModel):
    """What a link is worth."""

    model_config = ConfigDict(extra="forbid")

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
    request: Request,
    reach: Reached,
    which: Asked,
    source: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this source.")] = None,
    page: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only on this page.")] = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """Links with the pages they stand on, best score first; with `url` none or one of each source."""
    if page is not None:
        await reach.page(page)
    links = await reach.kb.links.records(
        await reach.sources(source),
        replace(which, page=None if page is None else PageId(page)),
        after=read_link(cursor),
        limit=limit + 1,
    )
    return reply(request, part(links, limit, by_worth))


@router.get("/sources/{number}/links", response_model=Listing[LinkRecord])
async def links_of_source(
    request: Request,
    reach: Reached,
    which: Asked,
    number: Id,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The links of one source."""
    return await list_links(request, reach, which, number, None, cursor, limit)


@router.get("/pages/{number}/links", response_model=Listing[LinkRecord])
async def links_of_page(
    request: Request,
    reach: Reached,
    which: Asked,
    number: Id,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The links of one page."""
    return await list_links(request, reach, which, None, number, cursor, limit)


@router.post("/links", status_code=201, response_model=LinkRecord)
async def add_link(reach: Reached, body: NewLink, key: Key = None) -> Response:
    """Put a link on a page; it stays until the links of that page change."""
    await reach.page(body.page_id)
    link = await reach.kb.links.add(body.page_id, body.url, body.text)
    return made(link, 201, f"/api/v1/links/{link.id}")


@router.get("/links/{number}", response_model=LinkRecord)
async def show_link(request: Request, reach: Reached, number: Id) -> Response:
    """One link with the pages it stands on."""
    return reply(request, await reach.link(number))


@router.patch("/links/{number}", response_model=LinkRecord)
async def change_link(reach: Reached, number: Id, body: ChangedLink) -> Response:
    """Set score, keywords or comment of a link; they stay until it is scored again."""
    link = await reach.link(number)
    given = body.model_fields_set
    score = body.score if "score" in given or body.keywords is not None else link.score
    comment = body.comment if "comment" in given else link.comment
    return made(await reach.kb.links.set_worth(number, score, comment, body.keywords), 200)


@router.delete("/links/{number}", status_code=204)
async def remove_link(reach: Reached, number: Id) -> Response:
    """Take a link off its pages; it comes back when the links of one of them change."""
    await reach.link(number)
    await reach.kb.links.remove(number)
    return Response(status_code=204)
