"""Show the progress of a run, and handle Ctrl-C."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from afresh.aio import signal_handlers
from afresh.cli.session import Session
from afresh.config import Config
from afresh.errors import StoreUnreachable
from afresh.events import Event, Listener, MaintenanceProgress, Notice, PageStep, Progress, SyncProgress, WithoutSteps
from afresh.ports import StoreAccess
from afresh.present.wording import clean, count, duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from afresh.kb import KnowledgeBase

LINE_SECONDS = 5.0
REFRESHES = 8  # per second
OUTCOME_STYLES = {"new": "green", "changed": "yellow", "deleted": "red", "failed": "bold red", "refused": "magenta"}
OUTCOMES = ("new", "changed", "unchanged", "not_modified", "moved", "deleted", "missing", "refused", "failed")
Answer = TypeVar("Answer")
INTERRUPTED = 130
STORE_WAIT_SECONDS = 60.0  # how long a service waits for its store at startup
STORE_POLL_SECONDS = 0.5


class ProgressDisplay:
    """Base class of progress displays; shows nothing."""

    def receive(self, event: Event) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def close(self) -> None:
        """Restore the terminal."""


class LineDisplay(ProgressDisplay):
    """Prints a line every few seconds at most, for logs and pipes."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._next = clock() + LINE_SECONDS

    def receive(self, event: Event) -> None:
        match event:
            case Progress() | MaintenanceProgress() | SyncProgress() if self._clock() >= self._next:
                self._next = self._clock() + LINE_SECONDS
                self.say(progress_line(event))
            case Notice():
                self.say(event.text)
            case PageStep() if self._session.verbose > 1:
                self.say(f"{event.name} {event.url}")

    def say(self, text: str) -> None:
        self._session.say(text)


class LiveDisplay(LineDisplay):
    """Shows two lines for each run at the bottom of the terminal until all runs end."""

    def __init__(self, session: Session) -> None:
        from rich.live import Live as Display
        from rich.spinner import Spinner

        super().__init__(session)
        self._spinner = Spinner("dots", style="cyan")
        self._runs: dict[str, Progress | MaintenanceProgress | SyncProgress] = {}
        self._display = Display(
            get_renderable=self._draw, console=session.err, refresh_per_second=REFRESHES, transient=True
        )
        self._display.start()

    def receive(self, event: Event) -> None:
        match event:
            case Progress():
                self._runs[event.source] = event
            case MaintenanceProgress():
                self._runs = {"": event}
            case SyncProgress():
                self._runs = {event.sink: event}
            case _:
                super().receive(event)

    def say(self, text: str) -> None:
        self._session.say(text, style="dim")

    def close(self) -> None:
        self._display.stop()

    def _draw(self) -> "RenderableType":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        parts: list[RenderableType] = []
        for event in self._runs.values():
            parts.append(row := Table.grid(padding=(0, 1)))
            match event:
                case MaintenanceProgress():
                    row.add_row(self._spinner, progress_line(event), _bar(event.done, event.of))
                case SyncProgress():
                    row.add_row(self._spinner, progress_line(event))
                case Progress():
                    done, *rest = _pace(event)
                    head = (clean(event.source), "bold"), f"  {done}", (f" · {' · '.join(rest)}", "dim")
                    row.add_row(self._spinner, Text.assemble(*head), _bar(event.done, event.done + event.queued))
                    parts.append(Text("  ") + Text(" · ", "dim").join(Text(*each) for each in _outcomes(event)))
        if not parts:
            parts.append(row := Table.grid(padding=(0, 1)))
            row.add_row(self._spinner, "starting …")
        return Group(*parts)


def progress_line(event: Progress | MaintenanceProgress | SyncProgress) -> str:
    """Return the progress as a line such as `docs: 312 done, 85 queued, 140/s, 12 s: new 300, failed 1`."""
    match event:
        case MaintenanceProgress():
            return f"{event.task}: {count(event.done)} of {count(event.of)} {event.what}"
        case SyncProgress():
            done = ", ".join(f"{name} {count(number)}" for name, number in event.counts.items() if number)
            return f"{clean(event.sink)}: {done or 'comparing'}"
    found = ", ".join(words for words, _ in _outcomes(event))
    return f"{clean(event.source)}: {', '.join(_pace(event))}{found and f': {found}'}"


def _pace(event: Progress) -> tuple[str, str, str, str]:
    rate = event.done / event.seconds if event.seconds > 0 else 0
    queued, took = f"{count(event.queued)} queued", duration(event.seconds)
    return f"{count(event.done)} done", queued, f"{rate:,.0f}/s", took


def _outcomes(event: Progress) -> list[tuple[str, str]]:
    return [
        (f"{name.replace('_', ' ')} {count(number)}", OUTCOME_STYLES.get(name, ""))
        for name in OUTCOMES
        if (number := event.counts.get(name))
    ]


def _bar(done: int, total: int) -> "RenderableType":
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=max(total, 1), completed=done, width=24, style="bright_black", complete_style="cyan")


@contextmanager
def show_progress(session: Session) -> Iterator[ProgressDisplay]:
    """Show progress on stderr: live on a terminal, else as lines."""
    on_terminal = not session.quiet and session.err.is_terminal and not session.err.is_dumb_terminal
    watch = ProgressDisplay() if session.quiet else LiveDisplay(session) if on_terminal else LineDisplay(session)
    try:
        yield watch
    finally:
        watch.close()


def run(
    session: Session,
    work: Callable[["KnowledgeBase", Listener], Awaitable[Answer]],
    config: Config | None = None,
    *,
    access: StoreAccess = StoreAccess.CREATE,
    display: Callable[[Session], AbstractContextManager[ProgressDisplay]] = show_progress,
    wait_for_store: bool = False,
) -> Answer:
    """Run `work`, show its progress and return its result; the first Ctrl-C asks it to stop, the second quits."""

    async def work_with_display(kb: "KnowledgeBase") -> Answer:
        with display(session) as watch, handle_signals(StopSignals(kb.stop, watch)):
            return await work(kb, watch.receive if session.verbose > 1 else WithoutSteps(watch.receive))

    return session.ask(work_with_display, config, access=access, open_when_up=open_when_up if wait_for_store else None)


async def open_when_up(opened: Callable[[], Awaitable[Answer]]) -> Answer:
    """Retry `opened` until the store answers: at boot, the database may start later than this process."""
    deadline = asyncio.get_running_loop().time() + STORE_WAIT_SECONDS
    reported = False
    while True:
        try:
            return await opened()
        except StoreUnreachable as away:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            if not reported:
                print(f"afresh: {away} (waiting)", file=sys.stderr, flush=True)
            reported = True
            await asyncio.sleep(STORE_POLL_SECONDS)


class StopSignals:
    """Turns the first signal into a graceful stop and the second into an immediate exit."""

    def __init__(self, stop: Callable[[], None], watch: ProgressDisplay) -> None:
        self._stop = stop
        self._watch = watch
        self._pressed = False

    def interrupt(self) -> None:
        if self._pressed:  # exit now; claims are released when their lease ends
            self._watch.close()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        self._pressed = True
        self._watch.say("stopping … (press Ctrl-C again to quit immediately)")
        self._stop()

    def terminate(self) -> None:
        if not self._pressed:
            self._watch.say("stopping …")
        self._pressed = True
        self._stop()


def handle_signals(stop: StopSignals) -> AbstractContextManager[None]:
    return signal_handlers({signal.SIGINT: stop.interrupt, signal.SIGTERM: stop.terminate})
