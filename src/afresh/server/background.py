"""Background tasks of the server: process and start runs, send messages, sync external stores, delete old records."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from starlette.types import ASGIApp

from afresh.aio import wait_event
from afresh.backoff import next_wait
from afresh.config import Config
from afresh.errors import AfreshError
from afresh.events import Event, Notice
from afresh.kb import KnowledgeBase
from afresh.present.wording import sync_line
from afresh.server.telemetry import MetricsMiddleware
from afresh.sync.reports import SyncReport
from afresh.watch.watcher import WatchReport

log = logging.getLogger(__name__)

RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 300.0  # wait before a failed task is retried; doubles each time
WORKER, SCHEDULES = "worker", "schedules"
Work: TypeAlias = Callable[[], Awaitable[object]]


class ServerState:
    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.tasks: dict[str, str] = {}  # task name: "here" (running), or "resting" after a failure
        self.meter: MetricsMiddleware | None = None
        self.streams: Counter[str] = Counter()  # open event streams, by client

    def add_meter(self, app: ASGIApp) -> MetricsMiddleware:
        self.meter = MetricsMiddleware(app)
        return self.meter


def tasks(kb: KnowledgeBase, config: Config, *, works: bool, schedules: bool) -> Iterator[tuple[str, Work]]:
    if works:
        yield WORKER, lambda: kb.runs.work(listener=_log_event)
    if works or schedules:
        yield "webhooks", lambda: kb.webhooks.keep(listener=_log_event)
        yield "messages", kb.webhooks.keep_sending
        yield "retention", kb.status.keep_pruned
    if schedules:
        yield SCHEDULES, lambda: kb.schedules.keep(listener=_log_event, queues=True)
    if schedules and config.sinks:
        yield "external stores", lambda: kb.sinks.keep(sorted(config.sinks), on_report=_log_sync, listener=_log_event)
    if schedules and config.kb.in_use:
        yield "knowledge base", lambda: kb.digest.watch(on_report=_log_report, listener=_log_event)


async def run_task(state: ServerState, name: str, work: Work) -> None:
    """Run a task until it ends or the server stops, and retry it after errors."""
    pause, clock = RETRY_SECONDS, asyncio.get_running_loop().time
    while not state.stopping.is_set():
        state.tasks[name], began = "here", clock()
        try:
            await work()
        except AfreshError as error:
            log.warning("%s: %s; retrying in %.0f s", name, error, pause)
        except Exception:
            log.exception("%s: failed; retrying in %.0f s", name, pause)
        else:
            return
        state.tasks[name] = "resting"
        await wait_event(state.stopping, pause)
        has_recovered = clock() - began > 2 * MAX_RETRY_SECONDS
        pause = next_wait(0 if has_recovered else pause, RETRY_SECONDS, MAX_RETRY_SECONDS)


def _log_report(report: WatchReport) -> None:
    if isinstance(report, Notice):
        _log_event(report)
    else:
        log.info("index.txt: its source %s is up to date after run %s", report.source, report.run)


def _log_sync(report: SyncReport) -> None:
    log.log(logging.WARNING if report.error else logging.INFO, "synced %s", sync_line(report))


def _log_event(event: Event) -> None:
    if isinstance(event, Notice):
        log.info("%s", event.text)
