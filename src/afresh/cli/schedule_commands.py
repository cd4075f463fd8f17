"""Commands that keep sources fresh while they run: watch, schedule."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from afresh.cli.run_commands import check_flags
from afresh.cli.session import Session
from afresh.cli.shell import as_rows, command, labels, named, option, switch
from afresh.errors import UsageError
from afresh.model.records import RunState
from afresh.model.reports import RunReport, ScheduleView
from afresh.ports import StoreAccess
from afresh.present.wording import count, duration, label, sync_line
from afresh.sync.reports import SyncReport
from afresh.text.quantities import read_duration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import RenderableType

    from afresh.cli.progress import ProgressDisplay
    from afresh.events import Event, Listener
    from afresh.kb import KnowledgeBase
    from afresh.watch.watcher import Sight

    Tell = Callable[[RunReport], None]


SHORTEST, LONGEST = 0.05, 60.0  # seconds of a debounce
SHOWN = (
    *(("changed", "changed"), ("new", "new"), ("deleted", "gone"), ("moved", "moved")),
    *(("held", "held until you confirm"), ("doubtful", "not believed"), ("refused", "not read")),
    ("failed", "failed"),
)


@command(
    "Keep fresh",
    "afresh watch",
    "afresh watch notes --debounce 2s",
    "afresh watch --json | jq .changed",
    "afresh watch --kb",
)
@labels("Folders and lists of links, as NAME or NAME@VERSION; else all.")
@option("--debounce", "TIME", "How long a file rests before it is read (0.5s, 2s).", default="0.5s")
@switch("--kb whole_kb", "Keep index.txt and its cache fresh, as `init-kb` makes them.")
@option("--rescan", "TIME", "How often everything is listed, heard of or not.", default="1h")
def watch(session: Session, labels: tuple[str, ...], debounce: str, rescan: str, whole_kb: bool) -> int:
    """Keep folders and link lists fresh until Ctrl-C.

    Brings them up to date first. Then files that change, come, move or go are looked at as soon as they rest,
    and nothing else. One line tells of each batch; with --json one object per line.
    """
    if whole_kb and labels:
        raise UsageError("--kb names what is kept: leave out the labels")
    from afresh.watch.watcher import WatchTimes

    times = WatchTimes(debounce=_debounce(debounce), rescan=_rescan(rescan))
    teller = EventPrinter(session)

    async def work(kb: "KnowledgeBase", listener: "Listener") -> None:
        if whole_kb:
            await kb.digest.watch(tell=teller.tell, listener=listener)
            return
        await kb.runs.watch(labels, times=times, tell=teller.tell, listener=listener)

    from afresh.cli.progress import run

    run(
        session, work, access=StoreAccess.CREATE if whole_kb else StoreAccess.CHANGE, shown=calmly, stays=True
    )
    return 0


class EventPrinter:
    """Prints a line for each batch with changes, and repeated problems only once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._trouble: dict[str, str] = {}

    def tell(self, sight: "Sight") -> None:
        if isinstance(sight, RunReport):
            if self._is_news(sight):
                self._session.write_event(sight, line(sight))
        elif self._session.json:
            self._session.write_event({"notice": sight.text}, sight.text)
        else:
            self._session.say(sight.text)

    def _is_news(self, report: RunReport) -> bool:
        name, trouble = label(report.source, report.version), trouble_of(report)
        told = self._trouble.get(name)
        self._trouble[name] = trouble
        happened = any(getattr(report, field) for field in ("changed", "new", "deleted", "moved"))
        return happened or (bool(trouble) and trouble != told)


def line(report: RunReport) -> str:
    """Return a line such as `docs: 3 changed, 1 new, 1 gone in 0.2 s`."""
    counts = [f"{count(number)} {word}" for field, word in SHOWN if (number := getattr(report, field))]
    name, trouble = label(report.source, report.version), trouble_of(report)
    what = f"{name}: {', '.join(counts) or 'nothing changed'} in {duration(report.seconds)}"
    return f"{what} ({trouble})" if trouble else what


def trouble_of(report: RunReport) -> str:
    """Return why a run is incomplete, or an empty text."""
    match report.state:
        case RunState.NEEDS_CONFIRMATION:
            return f"afresh confirm {report.run} lets them go"
        case RunState.PARTIAL | RunState.FAILED:
            return report.error or str(report.state)
    return ""


@contextmanager
def calmly(session: Session) -> Iterator["ProgressDisplay"]:
    """Show notices immediately, and the progress of long runs."""
    from afresh.cli.progress import LINE_SECONDS, LineDisplay, ProgressDisplay
    from afresh.events import Progress

    class Calm(LineDisplay):
        def hear(self, event: "Event") -> None:
            if not isinstance(event, Progress) or event.seconds >= LINE_SECONDS:
                super().hear(event)

    yield ProgressDisplay() if session.quiet else Calm(session)


def keep_working(
    session: Session,
    work: "Callable[[KnowledgeBase, Listener, Tell], Awaitable[bool]]",
    *,
    once: bool,
) -> int:
    """Work until Ctrl-C, or `once`, and print each run that ends; return 1 if `once` and a run failed."""
    done: list[RunReport] = []

    def tell(report: RunReport) -> None:
        done.append(report)
        session.write_event(report, line(report))

    from afresh.cli import report
    from afresh.cli.progress import run

    well = run(
        session, lambda kb, hear: work(kb, hear, tell), access=StoreAccess.CHANGE, shown=calmly, stays=True
    )
    return report.exit_code(done) if once and well else int(once)


def _debounce(typed: str) -> float:
    found = re.fullmatch(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(ms|s)", typed.strip().lower())
    seconds = float(found[1]) / (1000 if found[2] == "ms" else 1) if found else 0.0
    if not SHORTEST <= seconds <= LONGEST:
        raise UsageError(f"--debounce: expected a time from 50ms to 60s such as 0.5s, got {typed[:40]!r}")
    return seconds


def _rescan(typed: str) -> float:
    with named("--rescan"):
        seconds = read_duration(typed).total_seconds()
    if seconds < 1:
        raise UsageError(f"--rescan: expected at least a second, got {typed[:40]!r}")
    return seconds


NONE = ("none", "null", "")


@command(
    "Keep fresh",
    "afresh schedule --set '0 3 * * *' --time-zone Europe/Berlin react@19",
    "afresh schedule --set 'every 6h' vue",
    "afresh schedule --set auto          # all sources, each page as often as it changes",
    "afresh schedule                     # keep all schedules until Ctrl-C",
    "afresh schedule --list",
    "afresh schedule --once --quiet      # in a cron job",
)
@labels()
@switch("--once", "Look at what is due now, then end; 1 if a run or a sync failed.")
@switch("--list listed", "Only tell the next times and how the last runs ended.")
@option("--set rule", "RULE", "Set the schedule: five fields of cron, @daily, every 6h, auto, none.")
@option("--time-zone", "ZONE", "With --set: the zone of the times, as Europe/Berlin.")
@as_rows
def schedule(
    session: Session,
    labels: tuple[str, ...],
    once: bool,
    listed: bool,
    rule: str | None,
    time_zone: str | None,
) -> int:
    """Run scheduled sources when they are due, until Ctrl-C.

    Any number of processes may do so on one store: each time is used once. A source whose run is still open
    is not started again, and times that were missed become one. Told to stop, runs under way end within
    seconds and go on with the next start. The external stores of a source are synced after its runs, while
    others go on. One line tells of each run or sync that ends; with --json one object each.
    """
    if time_zone is not None and rule is None:
        raise UsageError("--time-zone belongs to --set: write `afresh schedule --set RULE --time-zone ZONE`")
    if rule is not None:
        return _set(session, labels, rule, time_zone)
    if listed:
        return _show(session, session.ask(lambda kb: kb.schedules.views(labels)))
    return _keep(session, labels, once=once)


def _set(session: Session, labels: Sequence[str], rule: str, time_zone: str | None) -> int:
    meant = None if rule.strip().lower() in NONE else rule
    zone = {} if time_zone is None else {"time_zone": time_zone}
    check_flags(session, {"schedule": meant, **zone})
    views = session.ask(lambda kb: kb.schedules.set_rule(labels, meant, time_zone), access=StoreAccess.CHANGE)
    return _show(session, views)


def _show(session: Session, views: list[ScheduleView]) -> int:
    if not session.wrote_rows(views, ScheduleView):
        session.show(drawn(views, session.now))
    return 0


def _keep(session: Session, labels: Sequence[str], *, once: bool) -> int:
    def tell_sync(report: SyncReport) -> None:
        session.write_event(report, sync_line(report))

    async def work(kb: "KnowledgeBase", listener: "Listener", tell: "Tell") -> bool:
        if not await kb.schedules.views(labels):
            session.say("No source has a schedule yet: afresh schedule --set '0 3 * * *' NAME gives it one.")
        return await kb.schedules.keep(labels, once=once, tell=tell, tell_sync=tell_sync, listener=listener)

    return keep_working(session, work, once=once)


def drawn(views: Sequence[ScheduleView], now: datetime) -> "RenderableType":
    from afresh.cli.tables import empty, state, table, text
    from afresh.present.wording import ago, due

    if not views:
        return empty("No schedules yet. Set one:", "afresh schedule --set '0 3 * * *' NAME")
    columns = ("*source", "schedule", "next time", ">pages due", "last run", "state")
    rows = (
        (
            *(text(label(view.source, view.version), "bold"), _rule(view)),
            *("running now" if view.running else due(view.next_time, now), count(view.due or 0)),
            *(ago(view.last_time, now), state(view.last_state)),
        )
        for view in views
    )
    return table(columns, rows, less=("pages due", "last run"))


def _rule(view: ScheduleView) -> str:
    extra = view.budget or (view.time_zone if view.time_zone != "UTC" else None)
    return f"{view.schedule} ({extra})" if extra else view.schedule
