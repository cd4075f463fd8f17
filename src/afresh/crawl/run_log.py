"""Log runs, and visits with an unusual result; log other visits at debug level only."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from afresh.dataclass import asdict
from afresh.events import Event, Listener, ignore
from afresh.model.fetch import Outcome
from afresh.model.records import Run, RunMode, RunState, Source, Visit
from afresh.model.reports import RunReport
from afresh.ops.tracing import span

log = logging.getLogger("afresh.engine")

USUAL = (Outcome.SUCCESS, Outcome.NOT_MODIFIED)
ENDS = {RunState.COMPLETED: logging.INFO, RunState.CANCELLED: logging.INFO}
LEFT_OUT = ("run", "source", "version", "mode", "state", "notes", "error", "seconds")  # logged under other names


def unfailing(listener: Listener) -> Listener:
    """Return a listener that logs errors of the given one, so that a display error does not fail a page."""

    def report(event: Event) -> None:
        try:
            listener(event)
        except Exception:
            log.exception("the listener failed at %s", type(event).__name__)

    return listener if listener is ignore else report


def run_started(run: Run, source: str, *, resumed: bool) -> None:
    event = "run resumed" if resumed else "run started"
    log.info(event, extra={"data": {"run": run.id, "source": source, "mode": run.mode, "full": run.full}})


def run_ended(report: RunReport, source: str) -> None:
    counts = {name: value for name, value in asdict(report).items() if name not in LEFT_OUT and value}
    data = {"run": report.run, "source": source, "state": report.state, "seconds": report.seconds, **counts}
    data |= {"error": report.error, "notes": "; ".join(report.notes) or None}
    log.log(ENDS.get(RunState(report.state), logging.WARNING), "run ended", extra={"data": data})
    if report.held:
        data = {"run": report.run, "source": source, "held": report.held}
        data["then"] = f"afresh confirm {report.run}"
        log.warning("deletions need confirmation", extra={"data": data})


def visits_written(visits: Sequence[Visit]) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    for visit in visits:
        decision = visit.decision
        usual = decision.outcome in USUAL and decision.error_message is None
        event = f"page {decision.outcome.replace('_', ' ')}"
        if decision.doubtful or decision.refused:
            event = "page doubted" if decision.doubtful else "page refused"
        url, reason = visit.claim.page.url, decision.reason or None
        data = {"url": url, "status": decision.status_code, "reason": reason}
        log.log(logging.DEBUG if usual else logging.INFO, event, extra={"data": data})


@contextmanager
def run_span(source: Source, mode: RunMode) -> Iterator[Callable[[RunReport], RunReport]]:
    """Open a tracing span for a run; yield a function that adds a report to the span and returns the report."""
    with span("run", {"afresh.source": source.label, "afresh.mode": str(mode)}) as note:

        def ended(report: RunReport) -> RunReport:
            names = ("checked", "new", "changed", "failed")
            counts = {f"afresh.{name}": getattr(report, name) for name in names}
            note.add({"afresh.run": report.run, "afresh.state": str(report.state), **counts})
            return report

        yield ended
