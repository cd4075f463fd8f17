"""Runs: started, watched, cancelled, confirmed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from afresh.aio import heard
from afresh.errors import StoreError, Unknown
from afresh.model.fetch import Outcome
from afresh.model.overview import Held
from afresh.model.records import Attempt, RunMode, RunState
from afresh.model.reports import RunReport
from afresh.server.api.replies import as_json, made, reply
from afresh.server.cursors import attempt_cursor, number_cursor, read_attempt, read_number
from afresh.server.idempotency import Key, OnceRoute
from afresh.server.listing import Listing, by_id, part
from afresh.server.parts import LARGEST, USUAL, Cursor, Id, Limit
from afresh.server.request_context import Reach, Reached
from afresh.server.streams import streamed
from afresh.sync.reports import DocumentOutcome, SyncedDocument

router = APIRouter(tags=["runs"], route_class=OnceRoute)
GOING = (RunState.QUEUED, RunState.RUNNING)
LOOK = 0.5  # seconds between looks at a run that is watched
QUIET = 30  # looks without news after which a sign of life is sent
State = Annotated[RunState | None, Query(description="Only runs in this state.")]


class NewRun(BaseModel):
    """A run to start."""

    model_config = ConfigDict(extra="forbid")

    source_id: int = Field(ge=1, le=LARGEST)
    due: bool = Field(False, description="Only pages whose time has come.")
    full: bool = Field(False, description="Read every page again, changed or not.")


@router.get("/runs", response_model=Listing[RunReport])
async def list_runs(
    request: Request,
    reach: Reached,
    source: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this source.")] = None,
    state: State = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """Runs, newest first."""
    below = read_number(cursor)
    runs = await reach.kb.runs.records(await reach.sources(source), state=state, below=below, limit=limit + 1)
    return reply(request, part(runs, limit, lambda run: number_cursor(run.run)))


@router.get("/sources/{number}/runs", response_model=Listing[RunReport])
async def runs_of_source(
    request: Request,
    reach: Reached,
    number: Id,
    state: State = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The runs of one source."""
    return await list_runs(request, reach, number, state, cursor, limit)


@router.post("/runs", status_code=202, response_model=RunReport)
async def start_run(reach: Reached, body: NewRun, key: Key = None) -> Response:
    """Start a run of a source; 409 names the run that is open already."""
    source = await reach.source(body.source_id)
    run = await reach.kb.runs.start(source, RunMode.DUE if body.due else None, full=body.full)
    return made(run, 202, f"/api/v1/runs/{run.run}")


@router.get("/runs/{number}", response_model=RunReport)
async def show_run(request: Request, reach: Reached, number: Id) -> Response:
    """One run, as far as it is."""
    await reach.run(number)
    return reply(request, await reach.kb.runs.get(number))


@router.post("/runs/{number}/cancel", response_model=RunReport)
async def cancel_run(reach: Reached, number: Id, key: Key = None) -> Response:
    """Stop a run; what it has read stays, and the next one goes on with it."""
    await reach.run(number)
    return made(await reach.kb.runs.cancel(number), 200)


@router.post("/runs/{number}/confirm", response_model=RunReport)
async def confirm_run(reach: Reached, number: Id, key: Key = None) -> Response:
    """Let a run that the brake holds delete what it found gone."""
    await reach.run(number)
    return made(await reach.kb.runs.confirm(number), 200)


@router.get("/runs/{number}/held", response_model=Held)
async def held_by_run(request: Request, reach: Reached, number: Id) -> Response:
    """What a run that the brake holds would delete."""
    await reach.run(number)
    return reply(request, await reach.kb.runs.blocked_deletions(number))


@router.get("/runs/{number}/attempts", response_model=Listing[Attempt])
async def attempts_of_run(
    request: Request,
    reach: Reached,
    number: Id,
    outcome: Annotated[Outcome | None, Query(description="Only attempts that ended so.")] = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """What a run looked at so far, what went wrong first."""
    await reach.run(number)
    after = read_attempt(cursor)
    found = await reach.kb.runs.attempts(number, outcome=outcome, after=after, limit=limit + 1)
    return reply(request, part(found, limit, attempt_cursor))


@router.get("/runs/{number}/documents", response_model=Listing[SyncedDocument])
async def documents_of_run(
    request: Request,
    reach: Reached,
    number: Id,
    outcome: Annotated[DocumentOutcome | None, Query(description="Only documents that ended so.")] = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """What a sync did about documents of external stores: as it left each, and as it is now."""
    await reach.run(number)
    after = read_number(cursor) or 0
    found = await reach.kb.runs.documents(number, outcome=outcome, after=after, limit=limit + 1)
    return reply(request, part(found, limit, by_id))


@router.get(
    "/runs/{number}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
async def watch_run(request: Request, reach: Reached, number: Id) -> StreamingResponse:
    """How far a run is, as server-sent events: `progress` whenever it moved, then `end`."""
    await reach.run(number)
    return streamed(request, _events(reach, number, request.app.state.desk.stopping))


async def _events(reach: Reach, number: int, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    told, quiet = b"", 0
    while not stopping.is_set():
        try:
            run = await reach.kb.runs.get(number)
        except Unknown:
            yield b'event: end\ndata: {"state":"removed"}\n\n'
            return
        except StoreError:
            return  # whoever watches asks again
        body = as_json(replace(run, seconds=0.0))
        if run.state not in GOING:
            yield b"event: end\ndata: " + as_json(run) + b"\n\n"
            return
        if body != told:
            told, quiet = body, 0
            yield b"event: progress\ndata: " + as_json(run) + b"\n\n"
        elif (quiet := quiet + 1) % QUIET == 0:
            yield b": still there\n\n"
        await heard(stopping, LOOK)
