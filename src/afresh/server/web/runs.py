"""One run: how far it is, what it changed and looked at, and what the brake holds."""

from contextlib import suppress

from fastapi import APIRouter, Request, Response

from afresh.errors import RunBusy, RunOver
from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind
from afresh.server.cursors import attempt_cursor, read_attempt, read_number
from afresh.server.listing import by_id
from afresh.server.parts import Id
from afresh.server.request_context import Reach, Reached
from afresh.server.web.diffs import cut_for
from afresh.server.web.frame import PageRoute, show, to
from afresh.server.web.listing import CHANGES, SHOWN, Cursor, Filter, one_of, part
from afresh.server.web.live import is_going
from afresh.sync.reports import DocumentOutcome

router = APIRouter(include_in_schema=False, route_class=PageRoute)
TABS = (("", "Changes"), ("attempts", "Attempts"))
SYNC_TABS = (("documents", "Documents"),)


@router.get("/runs/{number}")
async def changes(
    request: Request, reach: Reached, number: Id, view: Filter = "", kind: Filter = "", after: Cursor = None
) -> Response:
    """What it changed so far; of a sync its documents."""
    source = await reach.run(number)
    if (await reach.kb.runs.get(number)).documents is not None:
        return to(f"/runs/{number}/documents")
    only, below = one_of(ChangeKind, "kind", kind), read_number(after)
    found = reach.kb.pages.change_records([source.id], run=number, kind=only, below=below, limit=CHANGES + 1)
    listed = await part(found, by_id, CHANGES)
    return await _tab(request, reach, number, "", listed=listed, view=view, cut=cut_for(view), kind=kind)


@router.get("/runs/{number}/attempts")
async def attempts(
    request: Request, reach: Reached, number: Id, outcome: Filter = "", after: Cursor = None
) -> Response:
    """What it looked at so far, by outcome."""
    await reach.run(number)
    only, behind = one_of(Outcome, "outcome", outcome), read_attempt(after)
    found = reach.kb.runs.attempts(number, outcome=only, after=behind, limit=SHOWN + 1)
    listed = await part(found, attempt_cursor)
    given = {"outcome": outcome, "outcomes": list(Outcome)}
    return await _tab(request, reach, number, "attempts", listed=listed, **given)


@router.get("/runs/{number}/documents")
async def documents(
    request: Request, reach: Reached, number: Id, outcome: Filter = "", after: Cursor = None
) -> Response:
    """What a sync did about documents of external stores, as it left each and as it is now."""
    await reach.run(number)
    only, behind = one_of(DocumentOutcome, "outcome", outcome), read_number(after) or 0
    found = reach.kb.runs.documents(number, outcome=only, after=behind, limit=SHOWN + 1)
    listed = await part(found, by_id)
    given = {"outcome": outcome, "outcomes": list(DocumentOutcome)}
    return await _tab(request, reach, number, "documents", listed=listed, **given)


async def _tab(request: Request, reach: Reach, number: int, tab: str, **given: object) -> Response:
    source = await reach.run(number)
    live = await reach.kb.runs.live(lambda label: label == source.label)  # before the run itself
    run = await reach.kb.runs.get(number)
    return show(
        request,
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
    """Stop it; what it has read stays."""
    await reach.run(number)
    with suppress(RunOver):  # by a press before, or by itself just now: that it is over is what they see
        await reach.kb.runs.cancel(number)
    return to(f"/runs/{number}")


@router.post("/runs/{number}/confirm")
async def confirm(reach: Reached, number: Id) -> Response:
    """Let it delete what the brake holds."""
    await reach.run(number)
    with suppress(RunOver, RunBusy):
        await reach.kb.runs.confirm(number)
    return to(f"/runs/{number}")
