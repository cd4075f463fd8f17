"""Commands that keep sources fresh while they run: watch, schedule."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afresh.cli.run_commands import check_flags
from afresh.cli.session import Session
from afresh.cli.shell import as_rows, command, labels, named, option, switch
from afresh.errors import UsageError
from afresh.model.records import RunState
from afresh.model.reports import RunReport, ScheduleView
from afresh.ports import StoreAccess
from afresh.present.wording import count, due, duration, label, sync_line
from afresh.sync.reports import SyncReport
from afresh.text.quantities import read_duration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from afresh.cli.progress import ProgressDisplay
    from afresh.events import Event, Listener
    from afresh.kb import KnowledgeBase
    from afresh.watch.watcher import WatchReport

    ReportListener = Callable[[RunReport], None]

MIN_DEBOUNCE_SECONDS, MAX_DEBOUNCE_SECONDS = 0.05, 60.0
COUNTS = (
    *(("changed", "changed"), ("new", "new"), ("deleted", "deleted"), ("moved", "moved")),
    *(("held", "awaiting confirmation"), ("doubtful", "doubtful"), ("refused", "skipped")),
    ("failed", "failed"),
)


@command(
    "Keep fresh",
    "afresh watch",
    "afresh watch notes --debounce 2s",
    "afresh watch --json | jq .changed",
    "afresh watch --kb",
)
@labels("Folders and link lists, as NAME or NAME@VERSION (default: all).")
@option("--debounce", "TIME", "How long a file must stay unchanged before it is read, such as 0.5s.", default="0.5s")
@switch("--kb whole_kb", "Keep the index.txt of `init-kb` up to date.")
@option("--rescan", "TIME", "How often to list all files, in case an event was lost.", default="1h")
def watch(session: Session, labels: tuple[str, ...], debounce: str, rescan: str, whole_kb: bool) -> int:
    """Keep folders and link lists fresh until Ctrl-C.

    First brings all of them up to date. Then checks only files that are changed, added, moved or deleted. Prints one
    line per batch; with --json one object per line.
    """
    if whole_kb and labels:
        raise UsageError("--kb takes no labels: leave them out")
    from afresh.watch.watcher import WatchTimes

    times = WatchTimes(debounce=_debounce(debounce), rescan=_rescan(rescan))
    printer = EventPrinter(session)

    async def work(kb: "KnowledgeBase", listener: "Listener") -> None:
        if whole_kb:
            await kb.digest.watch(on_report=printer.receive, listener=listener)
            return
        await kb.runs.watch(labels, times=times, on_report=printer.receive, listener=listener)

    from afresh.cli.progress import run

    run(
        session,
        work,
        access=StoreAccess.CREATE if whole_kb else StoreAccess.CHANGE,
        display=show_long_runs,
        wait_for_store=True,
    )
    return 0


class EventPrinter:
    """Prints a line for each batch with changes, and repeated problems only once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._problems: dict[str, str] = {}

    def receive(self, report: "WatchReport") -> None:
        if isinstance(report, RunReport):
            if self._is_new(report):
                self._session.write_event(report, line(report))
        elif self._session.json:
            self._session.write_event({"notice": report.text}, report.text)
        else:
            self._session.say(report.text)

    def _is_new(self, report: RunReport) -> bool:
        name, problem = label(report.source, report.version), problem_of(report)
        reported = self._problems.get(name)
        self._problems[name] = problem
        happened = any(getattr(report, field) for field in ("changed", "new", "deleted", "moved"))
        return happened or (bool(problem) and problem != reported)


def line(report: RunReport) -> str:
    """Return a line such as `docs: 3 changed, 1 new, 1 deleted in 0.2 s`."""
    counts = [f"{count(number)} {word}" for field, word in COUNTS if (number := getattr(report, field))]
    name, problem = label(report.source, report.version), problem_of(report)
    what = f"{name}: {', '.join(counts) or 'nothing changed'} in {duration(report.seconds)}"
    return f"{what} ({problem})" if problem else what


def problem_of(report: RunReport) -> str:
    match report.state:
        case RunState.NEEDS_CONFIRMATION:
            return f"confirm with `afresh confirm {report.run}`"
        case RunState.PARTIAL | RunState.FAILED:
            return report.error or str(report.state)
    return ""


@contextmanager
def show_long_runs(session: Session) -> Iterator["ProgressDisplay"]:
    """Show notices immediately, and the progress of long runs."""
    from afresh.cli.progress import LINE_SECONDS, LineDisplay, ProgressDisplay
    from afresh.events import Progress

    class Calm(LineDisplay):
        def receive(self, event: "Event") -> None:
            if not isinstance(event, Progress) or event.seconds >= LINE_SECONDS:
                super().receive(event)

    yield ProgressDisplay() if session.quiet else Calm(session)


def keep_working(
    session: Session, work: "Callable[[KnowledgeBase, Listener, ReportListener], Awaitable[bool]]", *, once: bool
) -> int:
    """Run `work` until it ends or the user presses Ctrl-C, and print the report of each run.

    Return 0; with `once`, return the exit code for the runs, or 1 if `work` returns False.
    """
    done: list[RunReport] = []

    def on_report(report: RunReport) -> None:
        done.append(report)
        session.write_event(report, line(report))

    from afresh.cli import report
    from afresh.cli.progress import run

    well = run(
        session,
        lambda kb, listener: work(kb, listener, on_report),
        access=StoreAccess.CHANGE,
        display=show_long_runs,
        wait_for_store=True,
    )
    return report.exit_code(done) if once and well else int(once)


def _debounce(typed: str) -> float:
    found = re.fullmatch(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(ms|s)", typed.strip().lower())
    seconds = float(found[1]) / (1000 if found[2] == "ms" else 1) if found else 0.0
    if not MIN_DEBOUNCE_SECONDS <= seconds <= MAX_DEBOUNCE_SECONDS:
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
    "afresh schedule                     # run all schedules until Ctrl-C",
    "afresh schedule --list",
    "afresh schedule --once --quiet      # in a cron job",
)
@labels()
@switch("--once", "Check what is due now, then exit; exit code 1 if a run or a sync failed.")
@switch("--list listed", "List the schedules with their next and last runs.")
@option("--set rule", "RULE", "Set the schedule: five cron fields, @daily, every 6h, auto or none.")
@option("--time-zone", "ZONE", "With --set: the time zone, such as Europe/Berlin.")
@as_rows
def schedule(
    session: Session, labels: tuple[str, ...], once: bool, listed: bool, rule: str | None, time_zone: str | None
) -> int:
    """Run scheduled sources when they are due, until Ctrl-C.

    Several processes may run schedules on one store: each scheduled time starts one run. A source is not started
    while its last run is active. Several missed times become one run. Ctrl-C stops active runs within seconds; the
    next start continues them. External stores are synced after the runs of their sources. Prints one line per
    finished run or sync; with --json one object per line.
    """
    if time_zone is not None and rule is None:
        raise UsageError("--time-zone needs --set: write `afresh schedule --set RULE --time-zone ZONE`")
    if rule is None and not listed:
        return _keep(session, labels, once=once)
    views = session.ask(lambda kb: _views(kb, labels)) if rule is None else _set(session, labels, rule, time_zone)
    if rule is not None and not views and not session.csv:
        session.inform(views, f"Removed the schedule of {', '.join(labels) or 'all sources'}.")
        return 0
    session.answer(views, "lists.schedules", session.now, rows=ScheduleView)
    if rule is not None:
        session.say("Schedules need a running process: `afresh schedule` or `afresh serve`.")
    return 0


def _set(session: Session, labels: Sequence[str], rule: str, time_zone: str | None) -> list[ScheduleView]:
    schedule = None if rule.strip().lower() in NONE else rule
    zone = {} if time_zone is None else {"time_zone": time_zone}
    try:
        check_flags(session, {"schedule": schedule, **zone})
    except UsageError as wrong:
        raise UsageError(
            f"{wrong}; `--set none` removes a schedule" if "--set:" in str(wrong) else str(wrong)
        ) from None

    async def change(kb: "KnowledgeBase") -> list[ScheduleView]:
        await kb.schedules.set_rule(await kb.sources.labelled(labels), schedule, **zone)
        return await _views(kb, labels)

    return session.ask(change, access=StoreAccess.CHANGE)


async def _views(kb: "KnowledgeBase", labels: Sequence[str]) -> list[ScheduleView]:
    sources = [source.id for source in await kb.sources.labelled(labels)] if labels else None
    views = await kb.schedules.records(sources)
    return sorted(views, key=lambda view: (view.next_time is None, view.next_time, view.source))


def _keep(session: Session, labels: Sequence[str], *, once: bool) -> int:
    def on_sync(report: SyncReport) -> None:
        session.write_event(report, sync_line(report))

    async def work(kb: "KnowledgeBase", listener: "Listener", on_report: "ReportListener") -> bool:
        if not (views := await _views(kb, labels)):
            session.say("No source has a schedule yet. Set one with `afresh schedule --set '0 3 * * *' NAME`.")
        elif not once:
            names = f"{label(views[0].source, views[0].version)}" if len(views) == 1 else count(len(views), "source")
            session.say(
                f"Running the schedules of {names}: next run {due(views[0].next_time, session.now)}. Ctrl-C stops."
            )
        return await kb.schedules.keep(labels, once=once, on_report=on_report, on_sync=on_sync, listener=listener)

    return keep_working(session, work, once=once)
