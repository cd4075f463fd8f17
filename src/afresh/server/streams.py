"""Server-sent events, and how many streams of them one caller may have."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.responses import StreamingResponse

from afresh.server.asgi import Refused
from afresh.server.auth import allowed_of

MOST = 50  # of one token, or of this machine: each asks the store now and then as long as it is open
WAIT_SECONDS = "20"
AGAIN_SECONDS = 30.0  # after which it is looked at again whether the token still holds
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def streamed(request: Request, events: AsyncIterator[bytes]) -> StreamingResponse:
    """An answer that tells events as they come; 429 for who listens to too many."""
    open_now, who = request.app.state.desk.streams, allowed_of(request.scope).who
    if open_now[who] >= MOST:
        why = f"{MOST} streams of events are open with this token; close some, or wait"
        raise Refused(429, why, retry_after=WAIT_SECONDS)

    holds, clock = request.scope["state"]["holds"], asyncio.get_running_loop().time

    async def counted() -> AsyncIterator[bytes]:
        open_now[who] += 1
        asked = clock()
        try:
            async for event in events:
                if clock() - asked > AGAIN_SECONDS:
                    if not await holds():
                        return
                    asked = clock()
                yield event
        finally:
            open_now[who] -= 1

    return StreamingResponse(counted(), media_type="text/event-stream", headers=HEADERS)
