"""Sources: what is kept fresh."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from afresh.config.overlay import check_names
from afresh.model.overview import ChangedSourceView, Preview
from afresh.model.records import RunMode
from afresh.model.reports import Plan, SourceView
from afresh.server.api.replies import made, reply
from afresh.server.cursors import read_number
from afresh.server.idempotency import Key, OnceRoute
from afresh.server.listing import Listing, by_id, part
from afresh.server.parts import USUAL, Address, Cursor, Id, Limit
from afresh.server.request_context import Reached

router = APIRouter(tags=["sources"], route_class=OnceRoute)
Settings = Annotated[
    dict[Annotated[str, Field(max_length=100)], Any],
    Field(max_length=100, description="As the flags of `afresh crawl` name them, such as max_pages."),
]


class NewSource(BaseModel):
    """A source to add."""

    model_config = ConfigDict(extra="forbid")

    target: Address = Field(description="An address, owner/repo, git+https://…, or a folder that is open.")
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    version: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    settings: Settings = {}
    run: bool = Field(True, description="Also start a run.")
    keep: bool = Field(False, description="Keep the source even if that run reads nothing.")
    again: bool = Field(False, description="Add the URL even if a source has it already.")


class Previewed(BaseModel):
    """A target that may become a source."""

    model_config = ConfigDict(extra="forbid")

    target: Address
    settings: Settings = {}


class ChangedSource(BaseModel):
    """What to change of a source."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    version: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="null takes the version away."
    )
    url: Address | None = Field(None, description="The root from the next run on; of the same kind.")
    again: bool = Field(False, description="Take the URL even if another source has it.")
    settings: Settings = {}
    reset: list[Annotated[str, Field(max_length=100)]] = Field(
        [], max_length=100, description="Settings that shall be as everywhere again."
    )


@router.get("/sources", response_model=Listing[SourceView])
async def list_sources(
    request: Request,
    reach: Reached,
    url: Annotated[str | None, Query(max_length=2_000, description="Just the source with this root.")] = None,
    name: Annotated[str | None, Query(max_length=100)] = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """Sources with their numbers, in the order they were added."""
    after = read_number(cursor) or 0
    sources = sorted(await reach.visible(), key=lambda source: source.id)
    found = [
        source
        for source in sources
        if source.id > after and url in (None, source.url) and name in (None, source.name)
    ]
    views = await reach.kb.sources.views_of(found[: limit + 1])
    return reply(request, part(views, limit, by_id))


@router.post("/sources", status_code=201, response_model=SourceView)
async def add_source(reach: Reached, body: NewSource, key: Key = None) -> Response:
    """Add a source, and start to read it unless `run` is false.

    200 if it was there, 409 if another source has the URL and `again` is false.
    """
    reach.allowed.check_everywhere()
    source, is_new = await reach.kb.sources.add(
        body.target,
        name=body.name,
        version=body.version,
        settings=body.settings,
        keep=body.keep or not body.run,
        again=body.again,
    )
    if body.run:
        await reach.kb.runs.start(source, RunMode.CRAWL)
    view = await reach.kb.sources.view(source.label)
    return made(view, 201 if is_new else 200, f"/api/v1/sources/{source.id}")


@router.post("/preview", response_model=Preview)
async def preview(reach: Reached, body: Previewed) -> Response:
    """What would be read of a target; its start page is looked at, and nothing is kept."""
    reach.allowed.check_everywhere()
    return made(await reach.kb.sources.preview(body.target, body.settings), 200)


@router.get("/sources/{number}", response_model=SourceView)
async def show_source(request: Request, reach: Reached, number: Id) -> Response:
    """One source with its numbers, settings and external stores."""
    return reply(request, await reach.kb.sources.view((await reach.source(number)).label))


@router.patch("/sources/{number}", response_model=ChangedSourceView)
async def change_source(reach: Reached, number: Id, body: ChangedSource) -> Response:
    """Change name, version, URL or settings of a source; what is not named stays.

    Name, version and URL take a token that is bound to no source. 409 if another source has the name or the
    URL, or if a run is in the way of another URL.
    """
    source = await reach.source(number)
    if body.model_fields_set & {"name", "version", "url"}:
        reach.allowed.check_everywhere()
    check_names(name for name in body.reset if name not in {*source.rules, *source.policy})
    changed, notes = await reach.kb.sources.change(
        source,
        name=body.name,
        version=body.version if "version" in body.model_fields_set else ...,
        url=body.url,
        again=body.again,
        settings=body.settings,
        reset=body.reset,
    )
    [view] = await reach.kb.sources.views_of([changed])
    return made(ChangedSourceView.of(view, notes), 200)


@router.delete("/sources/{number}", status_code=204)
async def remove_source(reach: Reached, number: Id) -> Response:
    """Delete a source with its pages; a run of it ends. The history of attempts stays."""
    await reach.kb.sources.remove((await reach.source(number)).label)
    return Response(status_code=204)


@router.get("/sources/{number}/plan", response_model=Plan)
async def plan(request: Request, reach: Reached, number: Id) -> Response:
    """What a refresh would look at and cost."""
    return reply(request, await reach.kb.sources.plan((await reach.source(number)).label))
