"""REST routes of runs: start, watch, cancel and confirm them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from afresh.dataclass import replace
from afresh.errors import NotFound
from afresh.model.fetch import Outcome
from afresh.model.overview import BlockedDeletions
from afresh.model.records import Attempt, RunMode, RunState
from afresh.model.reports import RunReport
from afresh.server.listing import MAX_ID, Listing, attempt_cursor, make_cursor, read_attempt
from afresh.server.replies import IdempotentRoute, Key, as_json, made, stream_events
from afresh.server.requests import Context, Id, OfSource, RequestBody, Window
from afresh.sync.reports import DocumentOutcome, SyncedDocument

router = APIRouter(tags=["runs"], route_class=IdempotentRoute)
POLL_SECONDS = 0.5  # between two queries while a run is watched
State = Annotated[RunState | None, Query(description="Only runs in this state.")]


class NewRun(RequestBody):
    """A run to start."""

    source_id: int = Field(ge=1, le=MAX_ID)
    due: bool = Field(False, description="Only check pages that are due.")
    full: bool = Field(False, description="Process every page again, even if it has not changed.")


@router.get("/runs", response_model=Listing[RunReport])
async def list_runs(ctx: Context, window: Window, source: OfSource = None, state: State = None) -> Response:
    """List runs, newest first."""
    found = ctx.kb.runs.records(await ctx.sources(source), state=state, below=window.number, limit=window.wanted)
    return ctx.reply(await window.of(found, lambda run: make_cursor(run.run)))


@router.get("/sources/{number}/runs", response_model=Listing[RunReport])
async def runs_of_source(ctx: Context, window: Window, number: Id, state: State = None) -> Response:
    """List the runs of one source."""
    return await list_runs(ctx, window, number, state)


@router.post("/runs", status_code=202, response_model=RunReport)
async def start_run(ctx: Context, body: NewRun, key: Key = None) -> Response:
    """Start a run of a source. If the source already has an open run, the answer is a 409 that names it."""
    source = await ctx.source(body.source_id)
    run = await ctx.kb.runs.start(source, RunMode.DUE if body.due else None, full=body.full)
    return made(run, 202, f"/api/v1/runs/{run.run}")


@router.get("/runs/{number}", response_model=RunReport)
async def show_run(ctx: Context, number: Id) -> Response:
    """Return one run with its progress."""
    return ctx.reply(await ctx.kb.runs.get(number))


@router.post("/runs/{number}/cancel", response_model=RunReport)
async def cancel_run(ctx: Context, number: Id, key: Key = None) -> Response:
    """Cancel a run. Its results are kept, and the next run continues from there."""
    return made(await ctx.kb.runs.cancel(number), 200)


@router.post("/runs/{number}/confirm", response_model=RunReport)
async def confirm_run(ctx: Context, number: Id, key: Key = None) -> Response:
    """Confirm the deletions of a run that exceeded the deletion limit."""
    return made(await ctx.kb.runs.confirm(number), 200)


@router.get("/runs/{number}/held", response_model=BlockedDeletions)
async def held_by_run(ctx: Context, number: Id) -> Response:
    """List the deletions of a run that await confirmation."""
    return ctx.reply(await ctx.kb.runs.blocked_deletions(number))


@router.get("/runs/{number}/attempts", response_model=Listing[Attempt])
async def attempts_of_run(
    ctx: Context,
    window: Window,
    number: Id,
    outcome: Annotated[Outcome | None, Query(description="Only attempts with this outcome.")] = None,
) -> Response:
    """List the attempts of a run, failures first."""
    found = ctx.kb.runs.attempts(number, outcome=outcome, after=read_attempt(window.cursor), limit=window.wanted)
    return ctx.reply(await window.of(found, attempt_cursor))


@router.get("/runs/{number}/documents", response_model=Listing[SyncedDocument])
async def documents_of_run(
    ctx: Context,
    window: Window,
    number: Id,
    outcome: Annotated[DocumentOutcome | None, Query(description="Only documents with this outcome.")] = None,
) -> Response:
    """List the documents that a sync run changed, each with its state after the sync and its state now."""
    found = ctx.kb.runs.documents(number, outcome=outcome, after=window.number or 0, limit=window.wanted)
    return ctx.reply(await window.of(found))


@router.get(
    "/runs/{number}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
async def watch_run(ctx: Context, number: Id) -> StreamingResponse:
    """Stream the progress of a run as server-sent events: `progress` after each change, then `end`."""
    await ctx.kb.runs.source_of(number)

    async def poll() -> tuple[object, bytes, float | None]:
        try:
            run = await ctx.kb.runs.get(number)
        except NotFound:
            return "end", b'event: end\ndata: {"state":"removed"}\n\n', None
        if run.state not in (RunState.QUEUED, RunState.RUNNING):
            return "end", b"event: end\ndata: " + as_json(run) + b"\n\n", None
        return replace(run, seconds=0.0), b"event: progress\ndata: " + as_json(run) + b"\n\n", POLL_SECONDS

    return stream_events(ctx.request, poll)
