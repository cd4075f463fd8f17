"""Web pages of runs: live progress, changes, attempts, documents and blocked deletions."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from afresh.aio import heard
from afresh.errors import RunBusy, RunFinished, StoreError
from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind, RunState, Source
from afresh.model.reports import RunReport
from afresh.server.listing import attempt_cursor, by_id, read_attempt, read_number
from afresh.server.replies import streamed
from afresh.server.requests import LARGEST, Id, Reached, RequestContext
from afresh.server.web.frame import CHANGES, SHOWN, Cursor, Filter, PageRoute, drawn, one_of, part, show, to
from afresh.server.web.rendered import cut_for
from afresh.sync.reports import DocumentOutcome

router = APIRouter(include_in_schema=False, route_class=PageRoute)

LOOK = 0.5  # seconds between queries for shown runs
IDLE = 2.0  # if none is active
LONGEST = 60.0  # seconds of one stream; the browser reconnects, and permissions are checked again
QUIET = 15  # queries without news between two keep-alive comments


@router.get("/live")
async def live(
    reach: Reached, source: Annotated[int | None, Query(ge=1, le=LARGEST)] = None
) -> StreamingResponse:
    """Stream the HTML of the current runs as server-sent events named `runs`, whenever it changes."""
    label = (await reach.source(source)).label if source is not None else None
    sees = reach.allowed.sees if label is None else lambda each: bool(each == label)
    stopping = reach.request.app.state.desk.stopping
    return streamed(reach.request, _events(reach, sees, label is None, stopping))


async def _events(
    reach: RequestContext, sees: Callable[[str], bool], whole: bool, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield events; with `whole`, include runs that need confirmation."""
    told, quiet = None, 0  # always send the first: a run may have ended since the page was rendered
    clock = asyncio.get_running_loop().time
    ends = clock() + LONGEST
    while not stopping.is_set() and clock() < ends:
        try:
            runs = await reach.kb.runs.live(sees)
        except StoreError:
            return  # the browser reconnects
        going = [each for each in runs if is_going(each)]
        body = drawn(reach.request, "parts/live.html", live=runs if whole else going)
        if body != told:
            told, quiet = body, 0
            yield f"event: runs\ndata: {json.dumps(body)}\n\n".encode()
        elif (quiet := quiet + 1) % QUIET == 0:
            yield b": still there\n\n"
        await heard(stopping, LOOK if going else IDLE)


def is_going(each: tuple[Source, RunReport]) -> bool:
    return each[1].state in (RunState.QUEUED, RunState.RUNNING)


TABS = (("", "Changes"), ("attempts", "Attempts"))
SYNC_TABS = (("documents", "Documents"),)


@router.get("/runs/{number}")
async def changes(
    reach: Reached, number: Id, view: Filter = "", kind: Filter = "", after: Cursor = None
) -> Response:
    source = await reach.kb.runs.source_of(number)
    if (await reach.kb.runs.get(number)).documents is not None:
        return to(f"/runs/{number}/documents")
    only, below = one_of(ChangeKind, "kind", kind), read_number(after)
    found = reach.kb.pages.changes(sources=[source.id], run=number, kind=only, below=below, limit=CHANGES + 1)
    listed = await part(found, by_id, CHANGES)
    return await _tab(reach, number, "", listed=listed, view=view, cut=cut_for(view), kind=kind)


@router.get("/runs/{number}/attempts")
async def attempts(reach: Reached, number: Id, outcome: Filter = "", after: Cursor = None) -> Response:
    only, behind = one_of(Outcome, "outcome", outcome), read_attempt(after)
    found = reach.kb.runs.attempts(number, outcome=only, after=behind, limit=SHOWN + 1)
    given = {"listed": await part(found, attempt_cursor), "outcome": outcome, "outcomes": list(Outcome)}
    return await _tab(reach, number, "attempts", **given)


@router.get("/runs/{number}/documents")
async def documents(reach: Reached, number: Id, outcome: Filter = "", after: Cursor = None) -> Response:
    only, behind = one_of(DocumentOutcome, "outcome", outcome), read_number(after) or 0
    found = reach.kb.runs.documents(number, outcome=only, after=behind, limit=SHOWN + 1)
    given = {"listed": await part(found, by_id), "outcome": outcome, "outcomes": list(DocumentOutcome)}
    return await _tab(reach, number, "documents", **given)


async def _tab(reach: RequestContext, number: int, tab: str, **given: object) -> Response:
    source = await reach.kb.runs.source_of(number)
    live = await reach.kb.runs.live(lambda label: label == source.label)  # fetched before the run itself
    run = await reach.kb.runs.get(number)
    return show(
        reach.request,
        f"run_{tab or 'changes'}.html",
        source=source,
        run=run,
        held=await reach.kb.runs.blocked_deletions(number),
        receipt=await reach.kb.sources.receipt(source),
        live=[each for each in live if is_going(each)],
        tabs=TABS if run.documents is None else SYNC_TABS,
        tab=tab,
        **given,
    )


@router.post("/runs/{number}/cancel")
async def cancel(reach: Reached, number: Id) -> Response:
    with suppress(RunFinished):  # already ended, such as by a second click
        await reach.kb.runs.cancel(number)
    return to(f"/runs/{number}")


@router.post("/runs/{number}/confirm")
async def confirm(reach: Reached, number: Id) -> Response:
    with suppress(RunFinished, RunBusy):
        await reach.kb.runs.confirm(number)
    return to(f"/runs/{number}")
