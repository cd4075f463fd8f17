"""Web pages of runs: live progress, changes, attempts, documents and blocked deletions."""

import json
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from afresh.errors import RunBusy, RunFinished
from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind, RunState, Source
from afresh.model.reports import RunReport
from afresh.server.listing import MAX_ID, attempt_cursor, read_attempt
from afresh.server.replies import stream_events
from afresh.server.requests import Context, Id, RequestContext
from afresh.server.web.frame import Changes, Choice, Items, PageRoute, redirect, render, show
from afresh.sync.reports import DocumentOutcome

router = APIRouter(include_in_schema=False, route_class=PageRoute)

POLL_SECONDS, IDLE_POLL_SECONDS = 0.5, 2.0  # between two queries for runs; the idle value applies if no run is active
STREAM_SECONDS = 60.0  # then the browser reconnects, and permissions are checked again
TABS = (("", "Changes"), ("attempts", "Attempts"))
SYNC_TABS = (("documents", "Documents"),)


@router.get("/live")
async def live(ctx: Context, source: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None) -> StreamingResponse:
    """Stream the HTML of the current runs as server-sent events named `runs`, whenever it changes.

    With `source`, leave out runs that need confirmation, because the pages of a source already show them.
    """
    label = (await ctx.source(source)).label if source is not None else None
    sees = ctx.allowed.sees if label is None else lambda each: bool(each == label)

    async def poll() -> tuple[object, bytes, float | None]:
        runs = await ctx.kb.runs.live(sees)
        active = [each for each in runs if is_active(each)]
        body = render(ctx.request, "parts/live.html", live=runs if label is None else active)
        event = f"event: runs\ndata: {json.dumps(body)}\n\n".encode()
        return body, event, POLL_SECONDS if active else IDLE_POLL_SECONDS

    return stream_events(ctx.request, poll, STREAM_SECONDS)


def is_active(each: tuple[Source, RunReport]) -> bool:
    return each[1].state in (RunState.QUEUED, RunState.RUNNING)


@router.get("/runs/{number}")
async def changes(ctx: Context, number: Id, window: Changes, kind: Choice[ChangeKind] = None) -> Response:
    source = await ctx.kb.runs.source_of(number)
    if (await ctx.kb.runs.get(number)).documents is not None:
        return redirect(f"/runs/{number}/documents")
    found = ctx.kb.pages.changes(sources=[source.id], run=number, kind=kind, below=window.number, limit=window.wanted)
    return await _tab(ctx, number, "", listed=await window.of(found))


@router.get("/runs/{number}/attempts")
async def attempts(ctx: Context, number: Id, window: Items, outcome: Choice[Outcome] = None) -> Response:
    found = ctx.kb.runs.attempts(number, outcome=outcome, after=read_attempt(window.cursor), limit=window.wanted)
    return await _tab(ctx, number, "attempts", listed=await window.of(found, attempt_cursor), outcomes=list(Outcome))


@router.get("/runs/{number}/documents")
async def documents(ctx: Context, number: Id, window: Items, outcome: Choice[DocumentOutcome] = None) -> Response:
    found = ctx.kb.runs.documents(number, outcome=outcome, after=window.number or 0, limit=window.wanted)
    return await _tab(ctx, number, "documents", listed=await window.of(found), outcomes=list(DocumentOutcome))


async def _tab(ctx: RequestContext, number: int, tab: str, **given: object) -> Response:
    source = await ctx.kb.runs.source_of(number)
    live = await ctx.kb.runs.live(lambda label: label == source.label)  # fetched before the run itself
    run = await ctx.kb.runs.get(number)
    return show(
        ctx.request,
        f"run_{tab or 'changes'}.html",
        source=source,
        run=run,
        held=await ctx.kb.runs.blocked_deletions(number),
        savings=await ctx.kb.sources.receipt(source),
        live=[each for each in live if is_active(each)],
        tabs=TABS if run.documents is None else SYNC_TABS,
        tab=tab,
        **given,
    )


@router.post("/runs/{number}/cancel")
async def cancel(ctx: Context, number: Id) -> Response:
    with suppress(RunFinished):  # already ended, such as by a second click
        await ctx.kb.runs.cancel(number)
    return redirect(f"/runs/{number}")


@router.post("/runs/{number}/confirm")
async def confirm(ctx: Context, number: Id) -> Response:
    with suppress(RunFinished, RunBusy):
        await ctx.kb.runs.confirm(number)
    return redirect(f"/runs/{number}")
