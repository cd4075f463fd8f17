"""REST routes of runs: start, watch, cancel and confirm them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from afresh.aio import heard
from afresh.errors import NotFound, StoreError
from afresh.model.fetch import Outcome
from afresh.model.overview import BlockedDeletions
from afresh.model.records import Attempt, RunMode, RunState
from afresh.model.reports import RunReport
from afresh.server import listing
from afresh.server.replies import IdempotentRoute, Key, as_json, made, streamed
from afresh.server.requests import LARGEST, Id, OfSource, Parted, Reached, RequestBody, RequestContext
from afresh.sync.reports import DocumentOutcome, SyncedDocument

router = APIRouter(tags=["runs"], route_class=IdempotentRoute)
GOING = (RunState.QUEUED, RunState.RUNNING)
LOOK = 0.5  # seconds between queries for a watched run
QUIET = 30  # queries without news between two keep-alive comments
State = Annotated[RunState | None, Query(description="Only runs in this state.")]


class NewRun(RequestBody):
    """A run to start."""

    source_id: int = Field(ge=1, le=LARGEST)
    due: bool = Field(False, description="Only pages whose time has come.")
    full: bool = Field(False, description="Read every page again, changed or not.")


@router.get("/runs", response_model=listing.Listing[RunReport])
async def list_runs(reach: Reached, part: Parted, source: OfSource = None, state: State = None) -> Response:
    """List runs, newest first."""
    sources = await reach.sources(source)
    runs = await reach.kb.runs.records(sources, state=state, below=part.number, limit=part.wanted)
    return reach.reply(part.of(runs, lambda run: listing.number_cursor(run.run)))


@router.get("/sources/{number}/runs", response_model=listing.Listing[RunReport])
async def runs_of_source(reach: Reached, part: Parted, number: Id, state: State = None) -> Response:
    """List the runs of one source."""
    return await list_runs(reach, part, number, state)


@router.post("/runs", status_code=202, response_model=RunReport)
async def start_run(reach: Reached, body: NewRun, key: Key = None) -> Response:
    """Start a run of a source; 409 names the run that is open already."""
    source = await reach.source(body.source_id)
    run = await reach.kb.runs.start(source, RunMode.DUE if body.due else None, full=body.full)
    return made(run, 202, f"/api/v1/runs/{run.run}")


@router.get("/runs/{number}", response_model=RunReport)
async def show_run(reach: Reached, number: Id) -> Response:
    """One run, as far as it is."""
    return reach.reply(await reach.kb.runs.get(number))


@router.post("/runs/{number}/cancel", response_model=RunReport)
async def cancel_run(reach: Reached, number: Id, key: Key = None) -> Response:
    """Stop a run; what it has read stays, and the next one goes on with it."""
    return made(await reach.kb.runs.cancel(number), 200)


@router.post("/runs/{number}/confirm", response_model=RunReport)
async def confirm_run(reach: Reached, number: Id, key: Key = None) -> Response:
    """Let a run that the brake holds delete what it found gone."""
    return made(await reach.kb.runs.confirm(number), 200)


@router.get("/runs/{number}/held", response_model=BlockedDeletions)
async def held_by_run(reach: Reached, number: Id) -> Response:
    """List the deletions of a run that await confirmation."""
    return reach.reply(await reach.kb.runs.blocked_deletions(number))


@router.get("/runs/{number}/attempts", response_model=listing.Listing[Attempt])
async def attempts_of_run(
    reach: Reached,
    part: Parted,
    number: Id,
    outcome: Annotated[Outcome | None, Query(description="Only attempts that ended so.")] = None,
) -> Response:
    """List the attempts of a run, failures first."""
    after = listing.read_attempt(part.cursor)
    found = await reach.kb.runs.attempts(number, outcome=outcome, after=after, limit=part.wanted)
    return reach.reply(part.of(found, listing.attempt_cursor))


@router.get("/runs/{number}/documents", response_model=listing.Listing[SyncedDocument])
async def documents_of_run(
    reach: Reached,
    part: Parted,
    number: Id,
    outcome: Annotated[DocumentOutcome | None, Query(description="Only documents that ended so.")] = None,
) -> Response:
    """List the documents that a sync changed: as it left each, and as it is now."""
    found = reach.kb.runs.documents(number, outcome=outcome, after=part.number or 0, limit=part.wanted)
    return reach.reply(part.of(await found))


@router.get(
    "/runs/{number}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
async def watch_run(reach: Reached, number: Id) -> StreamingResponse:
    """How far a run is, as server-sent events: `progress` whenever it moved, then `end`."""
    await reach.kb.runs.source_of(number)
    return streamed(reach.request, _events(reach, number, reach.request.app.state.desk.stopping))


async def _events(reach: RequestContext, number: int, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    told, quiet = b"", 0
    while not stopping.is_set():
        try:
            run = await reach.kb.runs.get(number)
        except NotFound:
            yield b'event: end\ndata: {"state":"removed"}\n\n'
            return
        except StoreError:
            return  # the client reconnects
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
