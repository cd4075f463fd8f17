"""One run: how far it is, what it changed, and what the brake holds."""

from contextlib import suppress

from fastapi import APIRouter, Request, Response

from afresh.core.errors import RunBusy, RunOver
from afresh.faces.http.cursors import read_number
from afresh.faces.http.listing import by_id
from afresh.faces.http.parts import Id
from afresh.faces.http.reach import Reached
from afresh.faces.web.diffs import cut_for
from afresh.faces.web.frame import PageRoute, show, to
from afresh.faces.web.listing import CHANGES, Cursor, Filter, part
from afresh.faces.web.overview import is_going

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/runs/{number}")
async def run(
    request: Request, reach: Reached, number: Id, view: Filter = "", after: Cursor = None
) -> Response:
    """What it did so far."""
    source = await reach.run(number)
    live = await reach.kb.live_runs(lambda label: label == source.label)  # before the run itself
    report = await reach.kb.run(number)
    changes = await reach.kb.change_list([source.id], run=number, below=read_number(after), limit=CHANGES + 1)
    return show(
        request,
        "run.html",
        source=source,
        run=report,
        held=await reach.kb.held(number),
        listed=part(changes, by_id, CHANGES),
        live=[each for each in live if is_going(each)],
        view=view,
        cut=cut_for(view),
    )


@router.post("/runs/{number}/cancel")
async def cancel(reach: Reached, number: Id) -> Response:
    """Stop it; what it has read stays."""
    await reach.run(number)
    with suppress(RunOver):  # by a press before, or by itself just now: that it is over is what they see
        await reach.kb.cancel(number)
    return to(f"/runs/{number}")


@router.post("/runs/{number}/confirm")
async def confirm(reach: Reached, number: Id) -> Response:
    """Let it delete what the brake holds."""
    await reach.run(number)
    with suppress(RunOver, RunBusy):
        await reach.kb.confirm(number)
    return to(f"/runs/{number}")
