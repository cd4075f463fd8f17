"""REST routes of sources and their schedules."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from afresh.config.layers import check_names
from afresh.model.overview import ChangedSourceView, Preview
from afresh.model.records import RunMode
from afresh.model.reports import NextCheck, RefreshPlan, ScheduleView, SourceView
from afresh.server.listing import Listing, look_cursor, number_cursor, read_look
from afresh.server.replies import IdempotentRoute, Key, made
from afresh.server.requests import Address, Id, Parted, Reached, RequestBody

router = APIRouter(tags=["sources"], route_class=IdempotentRoute)
Short = Annotated[str, Field(min_length=1, max_length=100)]
Settings = Annotated[
    dict[Annotated[str, Field(max_length=100)], Any],
    Field(max_length=100, description="As the flags of `afresh crawl` name them, such as max_pages."),
]


class NewSource(RequestBody):
    """A source to add."""

    target: Address = Field(description="An address, owner/repo, git+https://…, or a folder that is open.")
    name: Short | None = None
    version: Short | None = None
    settings: Settings = Field({})
    run: bool = Field(True, description="Also start a run.")
    keep: bool = Field(False, description="Keep the source even if that run reads nothing.")
    again: bool = Field(False, description="Add the URL even if a source has it already.")


class Previewed(RequestBody):
    """A target that may become a source."""

    target: Address
    settings: Settings = Field({})


class ChangedSource(RequestBody):
    """What to change of a source."""

    name: Short | None = None
    version: Short | None = Field(None, description="null takes the version away.")
    url: Address | None = Field(None, description="The root from the next run on; of the same kind.")
    again: bool = Field(False, description="Take the URL even if another source has it.")
    settings: Settings = Field({})
    reset: list[Annotated[str, Field(max_length=100)]] = Field(
        [], max_length=100, description="Settings that shall be as everywhere again."
    )


@router.get("/sources", response_model=Listing[SourceView])
async def list_sources(
    reach: Reached,
    part: Parted,
    url: Annotated[str | None, Query(max_length=2_000, description="Just the source with this root.")] = None,
    name: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """List sources with their counts, in the order they were added."""
    after = part.number or 0
    found = [
        source
        for source in sorted(await reach.kb.sources.all(), key=lambda source: source.id)
        if source.id > after and url in (None, source.url) and name in (None, source.name)
    ]
    views = await reach.kb.sources.views_of(found[: part.wanted])
    return reach.reply(part.of(views))


@router.post("/sources", status_code=201, response_model=SourceView)
async def add_source(reach: Reached, body: NewSource, key: Key = None) -> Response:
    """Add a source, and start to read it unless `run` is false.

    200 if it was there, 409 if another source has the URL and `again` is false.
    """
    reach.allowed.check_everywhere()
    given = body.model_dump(include={"target", "name", "version", "settings", "again"})
    source, is_new = await reach.kb.sources.add(**given, keep=body.keep or not body.run)
    if body.run:
        await reach.kb.runs.start(source, RunMode.CRAWL)
    view = await reach.kb.sources.view(source.label)
    return made(view, 201 if is_new else 200, f"/api/v1/sources/{source.id}")


@router.post("/preview", response_model=Preview)
async def preview(reach: Reached, body: Previewed) -> Response:
    """Preview a target: what would be read. Fetches its start page and stores nothing."""
    reach.allowed.check_everywhere()
    return made(await reach.kb.sources.preview(body.target, body.settings), 200)


@router.get("/sources/{number}", response_model=SourceView)
async def show_source(reach: Reached, number: Id) -> Response:
    """One source with its numbers, settings and external stores."""
    return reach.reply(await reach.kb.sources.view((await reach.source(number)).label))


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
    changed, notes = await reach.kb.sources.change(source, **body.model_dump(exclude_unset=True))
    [view] = await reach.kb.sources.views_of([changed])
    return made(ChangedSourceView.of(view, notes), 200)


@router.delete("/sources/{number}", status_code=204)
async def remove_source(reach: Reached, number: Id) -> Response:
    """Delete a source with its pages; a run of it ends. The history of attempts stays."""
    await reach.kb.sources.remove((await reach.source(number)).label)
    return Response(status_code=204)


@router.get("/sources/{number}/plan", response_model=RefreshPlan)
async def plan(reach: Reached, number: Id) -> Response:
    """Return what a refresh would check and cost."""
    return reach.reply(await reach.kb.sources.plan((await reach.source(number)).label))


schedules_router = APIRouter(tags=["schedules"])


class NewSchedule(RequestBody):
    """When to look at a source; what is left out is as the settings of the server say."""

    schedule: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="Five fields of cron such as `0 3 * * *`, `@daily`, `every 6h`, or `auto`.",
        examples=["0 3 * * *", "every 6h", "auto"],
    )
    time_zone: Short | None = Field(None, description="The zone of the times, as Europe/Berlin.")
    budget: Annotated[str, Field(min_length=1, max_length=40)] | None = Field(
        None, description="With `auto`: looks in a length of time, as 500/h."
    )


@schedules_router.get("/schedules", response_model=Listing[ScheduleView])
async def list_schedules(reach: Reached, part: Parted) -> Response:
    """List scheduled sources: rule, next time, due pages, last run and its result."""
    views = await reach.kb.schedules.records(await reach.sources(), after=part.number or 0, limit=part.wanted)
    return reach.reply(part.of(views, lambda view: number_cursor(view.source_id)))


@schedules_router.get("/sources/{number}/schedule", response_model=ScheduleView)
async def show_schedule(reach: Reached, number: Id) -> Response:
    """Return the schedule of a source; 404 if it has none."""
    return reach.reply(await reach.kb.schedules.of_source(await reach.source(number)))


@schedules_router.put("/sources/{number}/schedule", response_model=ScheduleView)
async def set_schedule(reach: Reached, number: Id, body: NewSchedule) -> Response:
    """Look at a source by itself from now on, instead of whatever schedule it had."""
    source = await reach.source(number)
    await reach.kb.schedules.put(source, body.schedule, time_zone=body.time_zone, budget=body.budget)
    return made(await reach.kb.schedules.of_source(await reach.source(number)), 200)


@schedules_router.delete("/sources/{number}/schedule", status_code=204)
async def remove_schedule(reach: Reached, number: Id) -> Response:
    """Look at a source only when somebody asks."""
    await reach.kb.schedules.put(await reach.source(number), None)
    return Response(status_code=204)


@schedules_router.get("/sources/{number}/due", response_model=Listing[NextCheck])
async def due_pages(
    reach: Reached,
    part: Parted,
    number: Id,
    everything: Annotated[
        bool, Query(alias="all", description="Also pages whose time has not come yet.")
    ] = False,
) -> Response:
    """List the due pages in the order in which they will be checked."""
    looks = await reach.kb.pages.next_checks(
        await reach.source(number), everything=everything, after=read_look(part.cursor), limit=part.wanted
    )
    return reach.reply(part.of(looks, look_cursor))
