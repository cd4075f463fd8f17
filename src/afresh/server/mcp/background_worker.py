"""The worker in this process: it works on open runs while there are any, and hands over what is left."""

import asyncio
import logging
from contextlib import suppress

from afresh.errors import AfreshError
from afresh.events import Event, Notice, Progress
from afresh.kb import KnowledgeBase

log = logging.getLogger(__name__)


class Hands:
    """Starts to work when it is woken, rests when nothing is open."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._wanted = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self.progress: dict[int, Progress] = {}  # how far each run is that is worked on here

    def wake(self) -> None:
        """There is something to do, or may be."""
        self._wanted = True
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work())

    async def wake_if_needed(self) -> None:
        """Go on with what an earlier process left open."""
        with suppress(AfreshError):
            if await self._kb.runs.has_work():
                self.wake()

    async def close(self) -> None:
        """End soon: a run that is not finished stays open, and the next process goes on with it."""
        self._closed = True
        if self._task is not None:
            self._kb.stop()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while self._wanted and not self._closed:
            self._wanted = False  # what is queued from now on is asked for again
            try:
                await self._kb.runs.work(once=True, listener=self._hear)
            except (
                Exception
            ):  # trouble with runs is told by get_job_info, and is no reason to end the session
                log.exception("open runs cannot be worked on")
            self.progress.clear()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progress[event.run] = event
        elif isinstance(event, Notice):
            log.info("%s", event.text)
