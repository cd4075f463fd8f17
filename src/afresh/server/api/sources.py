"""REST routes of sources and their schedules."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from afresh.config.layers import check_rule_names
from afresh.model.overview import ChangedSourceView, Preview
from afresh.model.records import RunMode
from afresh.model.reports import NextCheck, RefreshPlan, ScheduleView, SourceView
from afresh.server.listing import Listing, check_cursor, make_cursor, read_check
from afresh.server.replies import IdempotentRoute, Key, made
from afresh.server.requests import Address, Context, OneSource, RequestBody, Window

router = APIRouter(tags=["sources"], route_class=IdempotentRoute)
Short = Annotated[str, Field(min_length=1, max_length=100)]
Settings = Annotated[
    dict[Annotated[str, Field(max_length=100)], Any],
    Field(max_length=100, description="Settings by name, without their section, such as max_pages."),
]


class NewSource(RequestBody):
    """A source to add."""

    target: Address = Field(description="A URL, owner/repo, git+https://…, or a path below `server.allowed_roots`.")
    name: Short | None = None
    version: Short | None = None
    settings: Settings = Field({})
    run: bool = Field(True, description="Also start a run.")
    keep: bool = Field(False, description="Keep the source even if that run finds nothing.")
    again: bool = Field(False, description="Add the URL even if another source has it.")


class Previewed(RequestBody):
    """The target to preview."""

    target: Address
    settings: Settings = Field({})


class ChangedSource(RequestBody):
    """The changes to make to a source; omitted fields stay as they are."""

    name: Short | None = None
    version: Short | None = Field(None, description="null removes the version.")
    url: Address | None = Field(
        None, description="The new start URL, used from the next run on. It must be of the same kind."
    )
    again: bool = Field(False, description="Use the URL even if another source has it.")
    settings: Settings = Field({})
    reset: list[Annotated[str, Field(max_length=100)]] = Field(
        [], max_length=100, description="Settings to reset to their defaults."
    )


@router.get("/sources", response_model=Listing[SourceView])
async def list_sources(
    ctx: Context,
    window: Window,
    url: Annotated[str | None, Query(max_length=2_000, description="Only the source with this start URL.")] = None,
    name: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """List sources with their counts, in the order they were added."""
    after = window.number or 0
    found = [
        source
        for source in sorted(await ctx.kb.sources.all(), key=lambda source: source.id)
        if source.id > after and url in (None, source.url) and name in (None, source.name)
    ]
    return ctx.reply(await window.of(ctx.kb.sources.views_of(found[: window.wanted])))


@router.post("/sources", status_code=201, response_model=SourceView)
async def add_source(ctx: Context, body: NewSource, key: Key = None) -> Response:
    """Add a source, and start a crawl unless `run` is false.

    The answer is 200 if the source exists already, and 409 if another source has the URL and `again` is false.
    """
    ctx.allowed.check_everywhere()
    given = body.model_dump(include={"target", "name", "version", "settings", "again"})
    source, is_new = await ctx.kb.sources.add(**given, keep=body.keep or not body.run)
    if body.run:
        await ctx.kb.runs.start(source, RunMode.CRAWL)
    return made(await ctx.kb.sources.view(source.label), 201 if is_new else 200, f"/api/v1/sources/{source.id}")


@router.post("/preview", response_model=Preview)
async def preview(ctx: Context, body: Previewed) -> Response:
    """Preview what a crawl of a target would read. This fetches the start page and stores nothing."""
    ctx.allowed.check_everywhere()
    return made(await ctx.kb.sources.preview(body.target, body.settings), 200)


@router.get("/sources/{number}", response_model=SourceView)
async def show_source(ctx: Context, source: OneSource) -> Response:
    """Return one source with its counts, settings and external stores."""
    return ctx.reply(await ctx.kb.sources.view(source.label))


@router.patch("/sources/{number}", response_model=ChangedSourceView)
async def change_source(ctx: Context, source: OneSource, body: ChangedSource) -> Response:
    """Change name, version, URL or settings of a source; omitted fields stay.

    Changing name, version or URL needs a token that is not limited to sources. The answer is 409 if another source
    has the name or the URL, or if the URL cannot change because a run is open.
    """
    if body.model_fields_set & {"name", "version", "url"}:
        ctx.allowed.check_everywhere()
    check_rule_names(name for name in body.reset if name not in {*source.rules, *source.policy})
    changed, notes = await ctx.kb.sources.change(source, **body.model_dump(exclude_unset=True))
    [view] = await ctx.kb.sources.views_of([changed])
    return made(ChangedSourceView.of(view, notes), 200)


@router.delete("/sources/{number}", status_code=204)
async def remove_source(ctx: Context, source: OneSource) -> Response:
    """Delete a source with its pages and cancel its open run. The fetch history is kept."""
    await ctx.kb.sources.remove(source.label)
    return Response(status_code=204)


@router.get("/sources/{number}/plan", response_model=RefreshPlan)
async def plan(ctx: Context, source: OneSource) -> Response:
    """Return what a refresh would check and cost."""
    return ctx.reply(await ctx.kb.sources.plan(source.label))


schedules_router = APIRouter(tags=["schedules"])


class NewSchedule(RequestBody):
    """When to refresh a source; omitted fields use the settings of the server."""

    schedule: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="A cron line such as `0 3 * * *`, `@daily`, `every 6h`, or `auto`.",
        examples=["0 3 * * *", "every 6h", "auto"],
    )
    time_zone: Short | None = Field(None, description="Time zone of the schedule, such as Europe/Berlin.")
    budget: Annotated[str, Field(min_length=1, max_length=40)] | None = Field(
        None, description="With `auto`: maximum number of checks per time, such as 500/h."
    )


@schedules_router.get("/schedules", response_model=Listing[ScheduleView])
async def list_schedules(ctx: Context, window: Window) -> Response:
    """List scheduled sources with rule, next run, due pages and last result."""
    found = ctx.kb.schedules.records(None, after=window.number or 0, limit=window.wanted)
    return ctx.reply(await window.of(found, lambda view: make_cursor(view.source_id)))


@schedules_router.get("/sources/{number}/schedule", response_model=ScheduleView)
async def show_schedule(ctx: Context, source: OneSource) -> Response:
    """Return the schedule of a source; 404 if it has none."""
    return ctx.reply(await ctx.kb.schedules.of_source(source))


@schedules_router.put("/sources/{number}/schedule", response_model=ScheduleView)
async def set_schedule(ctx: Context, source: OneSource, body: NewSchedule) -> Response:
    """Set the schedule of a source, replacing any earlier one."""
    await ctx.kb.schedules.set_rule([source], body.schedule, time_zone=body.time_zone, budget=body.budget)
    return made(await ctx.kb.schedules.of_source(await ctx.source(source.id)), 200)


@schedules_router.delete("/sources/{number}/schedule", status_code=204)
async def remove_schedule(ctx: Context, source: OneSource) -> Response:
    """Remove the schedule of a source, so that it is only refreshed on request."""
    await ctx.kb.schedules.set_rule([source], None, time_zone=None, budget=None)
    return Response(status_code=204)


@schedules_router.get("/sources/{number}/due", response_model=Listing[NextCheck])
async def due_pages(
    ctx: Context,
    window: Window,
    source: OneSource,
    everything: Annotated[bool, Query(alias="all", description="Also pages that are not due yet.")] = False,
) -> Response:
    """List the due pages in the order in which they will be checked."""
    after = read_check(window.cursor)
    found = ctx.kb.pages.next_checks(source, everything=everything, after=after, limit=window.wanted)
    return ctx.reply(await window.of(found, check_cursor))
