"""Background tasks of the server: work on runs, start due ones, send messages, sync and prune."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from afresh.aio import heard
from afresh.backoff import next_wait
from afresh.config import Config
from afresh.errors import AfreshError
from afresh.events import Event, Notice
from afresh.kb import KnowledgeBase
from afresh.present.wording import sync_line
from afresh.server.asgi import App
from afresh.server.telemetry import MetricsMiddleware
from afresh.sync.reports import SyncReport
from afresh.watch.watcher import Sight

log = logging.getLogger(__name__)

PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds before a failed task is retried, doubled each time
WORKER, SCHEDULES = "worker", "schedules"
Work: TypeAlias = Callable[[], Awaitable[object]]


class ServerState:
    """State of the running application: whether it stops, its background tasks and open streams."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.at_work: dict[str, str] = {}  # "here" or "resting" after a failure, by task
        self.meter: MetricsMiddleware | None = None
        self.streams: Counter[str] = Counter()  # open event streams, by client

    def who(self, work: str) -> str:
        """Return where a task runs: "here", "resting" after a failure, or "elsewhere"."""
        return self.at_work.get(work, "elsewhere")

    def metered(self, app: App) -> MetricsMiddleware:
        self.meter = MetricsMiddleware(app)
        return self.meter


def tasks(kb: KnowledgeBase, config: Config, *, works: bool, schedules: bool) -> Iterator[tuple[str, Work]]:
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


async def keep(desk: ServerState, name: str, work: Work) -> None:
    """Run a task until it ends or the server stops, and retry it after errors."""
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
        pause = next_wait(0 if ticks() - began > 2 * LONGEST_PAUSE else pause, PAUSE, LONGEST_PAUSE)


def _see(sight: Sight) -> None:
    if isinstance(sight, Notice):
        _hear(sight)
    else:
        log.info("%s is up to date in the index after run %s", sight.source, sight.run)


def _tell(report: SyncReport) -> None:
    log.log(logging.WARNING if report.error else logging.INFO, "synced %s", sync_line(report))


def _hear(event: Event) -> None:
    """Log the notices of a worker."""
    if isinstance(event, Notice):
        log.info("%s", event.text)
