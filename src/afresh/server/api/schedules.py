"""Schedules: when sources are looked at by themselves, and which pages are due."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from afresh.model.reports import NextLook, ScheduleView
from afresh.server.api.replies import made, reply
from afresh.server.cursors import look_cursor, number_cursor, read_look, read_number
from afresh.server.listing import Listing, part
from afresh.server.parts import USUAL, Cursor, Id, Limit
from afresh.server.request_context import Reached

router = APIRouter(tags=["schedules"])


class NewSchedule(BaseModel):
    """When to look at a source; what is left out is as the settings of the server say."""

    model_config = ConfigDict(extra="forbid")

    schedule: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="Five fields of cron such as `0 3 * * *`, `@daily`, `every 6h`, or `auto`.",
        examples=["0 3 * * *", "every 6h", "auto"],
    )
    time_zone: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="The zone of the times, as Europe/Berlin."
    )
    budget: Annotated[str, Field(min_length=1, max_length=40)] | None = Field(
        None, description="With `auto`: looks in a length of time, as 500/h."
    )


@router.get("/schedules", response_model=Listing[ScheduleView])
async def list_schedules(
    request: Request, reach: Reached, cursor: Cursor = None, limit: Limit = USUAL
) -> Response:
    """Sources that are looked at by themselves: rule, next time, pages due, last run and how it ended."""
    views = await reach.kb.schedules.records(
        await reach.sources(), after=read_number(cursor) or 0, limit=limit + 1
    )
    return reply(request, part(views, limit, lambda view: number_cursor(view.source_id)))


@router.get("/sources/{number}/schedule", response_model=ScheduleView)
async def show_schedule(request: Request, reach: Reached, number: Id) -> Response:
    """The schedule of a source; 404 if it has none."""
    return reply(request, await reach.kb.schedules.of_source(await reach.source(number)))


@router.put("/sources/{number}/schedule", response_model=ScheduleView)
async def set_schedule(reach: Reached, number: Id, body: NewSchedule) -> Response:
    """Look at a source by itself from now on, instead of whatever schedule it had."""
    source = await reach.source(number)
    await reach.kb.schedules.put(source, body.schedule, time_zone=body.time_zone, budget=body.budget)
    return made(await reach.kb.schedules.of_source(await reach.source(number)), 200)


@router.delete("/sources/{number}/schedule", status_code=204)
async def remove_schedule(reach: Reached, number: Id) -> Response:
    """Look at a source only when somebody asks."""
    await reach.kb.schedules.put(await reach.source(number), None)
    return Response(status_code=204)


@router.get("/sources/{number}/due", response_model=Listing[NextLook])
async def due_pages(
    request: Request,
    reach: Reached,
    number: Id,
    everything: Annotated[
        bool, Query(alias="all", description="Also pages whose time has not come yet.")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The pages whose time has come, with that time, in the order in which they get their turn."""
    looks = await reach.kb.pages.next_checks(
        await reach.source(number), everything=everything, after=read_look(cursor), limit=limit + 1
    )
    return reply(request, part(looks, limit, look_cursor))
