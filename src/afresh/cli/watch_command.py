"""The command that keeps folders and lists of links fresh while it runs."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afresh.cli.session import Session
from afresh.cli.shell import argument, command, option, switch
from afresh.errors import UsageError
from afresh.model.records import RunState
from afresh.model.reports import RunReport
from afresh.ports import Access
from afresh.present.wording import count, duration, label
from afresh.text.durations import read_duration
from afresh.watch.options import Sight, WatchTimes

if TYPE_CHECKING:
    from afresh.cli.progress import Watch
    from afresh.events import Event, Listener
    from afresh.kb import KnowledgeBase

SHORTEST, LONGEST = 0.05, 60.0  # seconds that a debounce may last
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
@argument("labels", "[LABEL]...", "Folders and lists of links, as NAME or NAME@VERSION; else all.", nargs=-1)
@option(
    "--debounce", metavar="TIME", default="0.5s", text="How long a file rests before it is read (0.5s, 2s)."
)
@switch("--kb", "whole_kb", text="Keep index.txt and its cache fresh, as `init-kb` makes them.")
@option("--rescan", metavar="TIME", default="1h", text="How often everything is listed, heard of or not.")
def watch(session: Session, labels: tuple[str, ...], debounce: str, rescan: str, whole_kb: bool) -> int:
    """Keep folders and lists of links fresh until Ctrl-C.

    Brings them up to date first. Then files that change, come, move or go are looked at as soon as they rest,
    and nothing else. One line tells of each batch; with --json one object per line.
    """
    if whole_kb and labels:
        raise UsageError("--kb names what is kept: leave out the labels")
    times = WatchTimes(debounce=_debounce(debounce), rescan=_rescan(rescan))
    teller = Teller(session)

    async def work(kb: "KnowledgeBase", listener: "Listener") -> None:
        if whole_kb:
            await kb.digest.watch(tell=teller.tell, listener=listener)
            return
        await kb.runs.watch(tuple(dict.fromkeys(labels)), times=times, tell=teller.tell, listener=listener)

    from afresh.cli.running import run

    run(session, work, access=Access.CREATE if whole_kb else Access.CHANGE, shown=calmly, stays=True)
    return 0


class Teller:
    """Prints what was seen: a line for each batch in which something happened, trouble once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._trouble: dict[str, str] = {}

    def tell(self, sight: Sight) -> None:
        """Print one line, unless there is nothing to say."""
        if not isinstance(sight, RunReport):
            if self._session.json:
                self._write_line({"notice": sight.text})
            else:
                self._session.say(sight.text)
        elif self._is_news(sight):
            if self._session.json:
                self._write_line(sight)
            else:
                self._session.write(line(sight))
                sys.stdout.flush()

    def _write_line(self, value: object) -> None:
        from afresh.present.as_json import write_line

        write_line(value, sys.stdout)

    def _is_news(self, report: RunReport) -> bool:
        name, trouble = label(report.source, report.version), trouble_of(report)
        told = self._trouble.get(name)
        self._trouble[name] = trouble
        happened = any(getattr(report, field) for field in ("changed", "new", "deleted", "moved"))
        return happened or (bool(trouble) and trouble != told)


def line(report: RunReport) -> str:
    """`docs: 3 changed, 1 new, 1 gone in 0.2 s`."""
    counts = [f"{count(number)} {word}" for field, word in SHOWN if (number := getattr(report, field))]
    name, trouble = label(report.source, report.version), trouble_of(report)
    what = f"{name}: {', '.join(counts) or 'nothing changed'} in {duration(report.seconds)}"
    return f"{what} ({trouble})" if trouble else what


def trouble_of(report: RunReport) -> str:
    """What kept a run from being whole; nothing where nothing did."""
    match report.state:
        case RunState.NEEDS_CONFIRMATION:
            return f"afresh confirm {report.run} lets them go"
        case RunState.PARTIAL | RunState.FAILED:
            return report.error or str(report.state)
    return ""


@contextmanager
def calmly(session: Session) -> Iterator["Watch"]:
    """Notices at once, and the progress of runs that take long."""
    from afresh.cli.progress import LINE_SECONDS, Lines, Silence
    from afresh.events import Progress

    class Calm(Lines):
        def hear(self, event: "Event") -> None:
            if not isinstance(event, Progress) or event.seconds >= LINE_SECONDS:
                super().hear(event)

    yield Silence() if session.quiet else Calm(session)


def _debounce(typed: str) -> float:
    found = re.fullmatch(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(ms|s)", typed.strip().lower())
    seconds = float(found[1]) / (1000 if found[2] == "ms" else 1) if found else 0.0
    if not SHORTEST <= seconds <= LONGEST:
        raise UsageError(f"--debounce: expected a time from 50ms to 60s such as 0.5s, got {typed[:40]!r}")
    return seconds


def _rescan(typed: str) -> float:
    try:
        seconds = read_duration(typed).total_seconds()
    except UsageError as wrong:
        raise UsageError(f"--rescan: {wrong}") from None
    if seconds < 1:
        raise UsageError(f"--rescan: expected at least a second, got {typed[:40]!r}")
    return seconds
