"""The command that keeps schedules, sets them and lists them."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from afresh.cli.crawl_flags import check_flags
from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, option, switch
from afresh.cli.watch_command import calmly, line
from afresh.errors import UsageError
from afresh.model.reports import RunReport, ScheduleView
from afresh.ports import Access
from afresh.present.sync_line import line as sync_line
from afresh.sync.reports import SyncReport

if TYPE_CHECKING:
    from rich.console import RenderableType

    from afresh.events import Listener
    from afresh.kb import KnowledgeBase

Told = TypeVar("Told", RunReport, SyncReport)
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
@argument("labels", "[LABEL]...", "Sources, as NAME or NAME@VERSION; else all.", nargs=-1)
@switch("--once", text="Look at what is due now, then end; 1 if a run or a sync failed.")
@switch("--list", "listed", text="Only tell the next times and how the last runs ended.")
@option(
    "--set",
    "rule",
    metavar="RULE",
    text="Set the schedule: five fields of cron, @daily, every 6h, auto, none.",
)
@option("--time-zone", metavar="ZONE", text="With --set: the zone of the times, as Europe/Berlin.")
@as_rows
def schedule(
    session: Session,
    labels: tuple[str, ...],
    once: bool,
    listed: bool,
    rule: str | None,
    time_zone: str | None,
) -> int:
    """Look at sources when their time comes, until Ctrl-C.

    Any number of processes may do so on one store: each time is used once. A source whose run is still open
    is not started again, and times that were missed become one. Told to stop, runs under way end within
    seconds and go on with the next start. The external stores of a source are synced after its runs, while
    others go on. One line tells of each run or sync that ends; with --json one object each.
    """
    chosen = tuple(dict.fromkeys(labels))
    if time_zone is not None and rule is None:
        raise UsageError("--time-zone belongs to --set: write `afresh schedule --set RULE --time-zone ZONE`")
    if rule is not None:
        return _set(session, chosen, rule, time_zone)
    if listed:
        return _show(session, session.ask(lambda kb: kb.schedules.views(chosen)))
    return _keep(session, chosen, once=once)


def _set(session: Session, labels: Sequence[str], rule: str, time_zone: str | None) -> int:
    meant = None if rule.strip().lower() in NONE else rule
    zone = {} if time_zone is None else {"time_zone": time_zone}
    check_flags(session, {"schedule": meant, **zone})
    views = session.ask(lambda kb: kb.schedules.set_rule(labels, meant, time_zone), access=Access.CHANGE)
    return _show(session, views)


def _show(session: Session, views: list[ScheduleView]) -> int:
    if not session.wrote_rows(views, ScheduleView):
        session.show(drawn(views, session.now))
    return 0


def _keep(session: Session, labels: Sequence[str], *, once: bool) -> int:
    done: list[RunReport] = []

    def tell(report: RunReport) -> None:
        done.append(report)
        write(report, line)

    def tell_sync(report: SyncReport) -> None:
        write(report, sync_line)

    def write(report: Told, shown: Callable[[Told], str]) -> None:
        if session.json:
            from afresh.present.as_json import write_line

            write_line(report, sys.stdout)
        else:
            session.write(shown(report))
            sys.stdout.flush()

    async def work(kb: "KnowledgeBase", listener: "Listener") -> bool:
        if not await kb.schedules.views(labels):
            session.say("No source has a schedule yet: afresh schedule --set '0 3 * * *' NAME gives it one.")
        return await kb.schedules.keep(labels, once=once, tell=tell, tell_sync=tell_sync, listener=listener)

    from afresh.cli import report
    from afresh.cli.running import run

    well = run(session, work, access=Access.CHANGE, shown=calmly, stays=True)
    return report.exit_code(done) if once and well else int(once)


def drawn(views: Sequence[ScheduleView], now: datetime) -> "RenderableType":
    """Every schedule on one line."""
    from afresh.cli.pieces import empty, state, table, text
    from afresh.present.wording import ago, count, due, label

    if not views:
        return empty("No schedules yet. Set one:", "afresh schedule --set '0 3 * * *' NAME")
    columns = ("*source", "schedule", "next time", ">pages due", "last run", "state")
    rows = (
        (
            text(label(view.source, view.version), "bold"),
            text(_rule(view)),
            "running now" if view.running else due(view.next_time, now),
            count(view.due or 0),
            ago(view.last_time, now),
            state(view.last_state),
        )
        for view in views
    )
    return table(columns, rows, less=("pages due", "last run"))


def _rule(view: ScheduleView) -> str:
    extra = view.budget or (view.time_zone if view.time_zone != "UTC" else None)
    return f"{view.schedule} ({extra})" if extra else view.schedule
