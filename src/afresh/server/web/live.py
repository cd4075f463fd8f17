"""What runs now, as it moves."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from afresh.aio import heard
from afresh.errors import StoreError
from afresh.model.records import RunState, Source
from afresh.model.reports import RunReport
from afresh.server.parts import LARGEST
from afresh.server.request_context import Reach, Reached
from afresh.server.streams import streamed
from afresh.server.web.frame import PageRoute, drawn

router = APIRouter(include_in_schema=False, route_class=PageRoute)
LOOK = 0.5  # seconds between looks at runs that are watched
IDLE = 2.0  # where none is under way
LONGEST = 60.0  # seconds of one stream; a browser asks anew, and whether it still may is looked at again
QUIET = 15  # looks without news after which a sign of life is sent


@router.get("/live")
async def live(
    request: Request, reach: Reached, source: Annotated[int | None, Query(ge=1, le=LARGEST)] = None
) -> StreamingResponse:
    """What runs now, as server-sent events: `runs` with its HTML, whenever that changed."""
    label = (await reach.source(source)).label if source is not None else None
    sees = reach.allowed.sees if label is None else lambda each: bool(each == label)
    stopping = request.app.state.desk.stopping
    return streamed(request, _events(request, reach, sees, label is None, stopping))


async def _events(
    request: Request, reach: Reach, sees: Callable[[str], bool], whole: bool, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    """With `whole` also what waits for a word."""
    told, quiet = None, 0  # the first is always told: a run may have ended since the page was made
    clock = asyncio.get_running_loop().time
    ends = clock() + LONGEST
    while not stopping.is_set() and clock() < ends:
        try:
            runs = await reach.kb.runs.live(sees)
        except StoreError:
            return  # the browser asks again later
        going = [each for each in runs if is_going(each)]
        body = drawn(request, "parts/live.html", live=runs if whole else going)
        if body != told:
            told, quiet = body, 0
            yield f"event: runs\ndata: {json.dumps(body)}\n\n".encode()
        elif (quiet := quiet + 1) % QUIET == 0:
            yield b": still there\n\n"
        await heard(stopping, LOOK if going else IDLE)


def is_going(each: tuple[Source, RunReport]) -> bool:
    """Whether a run is under way or about to be."""
    return each[1].state in (RunState.QUEUED, RunState.RUNNING)
