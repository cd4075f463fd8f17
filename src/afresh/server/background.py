"""What the server does by itself: work on runs, start those that are due, keep others in line."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from afresh.aio import heard
from afresh.config import Config
from afresh.errors import AfreshError
from afresh.events import Event, Notice
from afresh.kb import KnowledgeBase
from afresh.present.sync_line import line
from afresh.server.asgi import App
from afresh.server.metrics import Meter
from afresh.sync.reports import SyncReport
from afresh.watch.options import Sight

log = logging.getLogger(__name__)

PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds before what fell is tried again, twice as many each time
WORKER, SCHEDULES = "worker", "schedules"
Work: TypeAlias = Callable[[], Awaitable[object]]


class Desk:
    """What the application is at: whether it stops, and what it does by itself."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.at_work: dict[str, str] = {}  # what is done here, or rests after it fell
        self.meter: Meter | None = None
        self.streams: Counter[str] = Counter()  # of events that are open, by who listens

    def who(self, work: str) -> str:
        """Who does a kind of work: it is done here, rests, or is left to other processes."""
        return self.at_work.get(work, "elsewhere")

    def metered(self, app: App) -> Meter:
        """An application whose answers are counted."""
        self.meter = Meter(app)
        return self.meter


def tasks(kb: KnowledgeBase, config: Config, *, works: bool, schedules: bool) -> Iterator[tuple[str, Work]]:
    """What the server does by itself, each by its name."""
    if works:
        yield WORKER, lambda: kb.runs.work(listener=_hear)
    if works or schedules:
        yield "webhooks", lambda: kb.webhooks.keep(listener=_hear)
        yield "messages", kb.webhooks.keep_sending
        yield "retention", kb.status.keep_pruned
    if schedules:
        yield SCHEDULES, lambda: kb.schedules.keep(listener=_hear, queues=True)
    if schedules and config.sinks:
        yield "external stores", lambda: kb.sinks.keep(sorted(config.sinks), tell=_tell, listener=_hear)
    if schedules and config.kb.in_use:
        yield "knowledge base", lambda: kb.digest.watch(tell=_see, listener=_hear)


async def keep(desk: Desk, name: str, work: Work) -> None:
    """Go on until told to stop, or until there is nothing more to do, whatever happens."""
    pause, ticks = PAUSE, asyncio.get_running_loop().time
    while not desk.stopping.is_set():
        desk.at_work[name], began = "here", ticks()
        try:
            await work()
        except AfreshError as error:
            log.warning("%s: %s; tried again in %.0f s", name, error, pause)
        except Exception:
            log.exception("%s: fell, and is tried again in %.0f s", name, pause)
        else:
            return
        desk.at_work[name] = "resting"
        await heard(desk.stopping, pause)
        pause = PAUSE if ticks() - began > 2 * LONGEST_PAUSE else min(2 * pause, LONGEST_PAUSE)


def _see(sight: Sight) -> None:
    """What the keeper of the index has to say."""
    if isinstance(sight, Notice):
        _hear(sight)
    else:
        log.info("%s is up to date in the index after run %s", sight.source, sight.run)


def _tell(report: SyncReport) -> None:
    """What a sync did."""
    log.log(logging.WARNING if report.error else logging.INFO, "synced %s", line(report))


def _hear(event: Event) -> None:
    """What a worker has to say goes into the log."""
    if isinstance(event, Notice):
        log.info("%s", event.text)
