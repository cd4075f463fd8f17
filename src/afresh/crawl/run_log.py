"""What the engine writes to the log: a line for what an operator asks about, none for what went as usual."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from afresh.events import Event, Listener, ignore
from afresh.model.fetch import Outcome
from afresh.model.records import Decision, Run, RunMode, RunState, Source, Visit
from afresh.model.reports import RunReport
from afresh.ops.tracing import span

log = logging.getLogger("afresh.engine")

USUAL = (Outcome.SUCCESS, Outcome.NOT_MODIFIED)
ENDS = {RunState.COMPLETED: logging.INFO, RunState.CANCELLED: logging.INFO}
LEFT_OUT = ("run", "source", "version", "mode", "state", "notes", "error", "seconds")  # told by other names


def unfailing(listener: Listener) -> Listener:
    """A listener whose own errors are written down here: no page fails because a screen does."""

    def tell(event: Event) -> None:
        try:
            listener(event)
        except Exception:
            log.exception("whoever listens failed at %s", type(event).__name__)

    return listener if listener is ignore else tell


def run_started(run: Run, source: str, *, resumed: bool) -> None:
    """A run begins, or goes on."""
    event = "run resumed" if resumed else "run started"
    log.info(event, extra={"data": {"run": run.id, "source": source, "mode": run.mode, "full": run.full}})


def run_ended(report: RunReport, source: str) -> None:
    """A run is over, with every count that is not nought and what the user is told beside them."""
    counts = {name: value for name, value in asdict(report).items() if name not in LEFT_OUT and value}
    data = {"run": report.run, "source": source, "state": report.state, "seconds": report.seconds, **counts}
    data |= {"error": report.error, "notes": "; ".join(report.notes) or None}
    log.log(ENDS.get(RunState(report.state), logging.WARNING), "run ended", extra={"data": data})
    if report.held:
        told = {
            "run": report.run,
            "source": source,
            "held": report.held,
            "then": f"afresh confirm {report.run}",
        }
        log.warning("brake holds deletions", extra={"data": told})


def visits_written(visits: Sequence[Visit]) -> None:
    """Pages whose look did not go as usual; with `debug` all of them."""
    if not log.isEnabledFor(logging.INFO):
        return
    for visit in visits:
        decision = visit.decision
        usual = decision.outcome in USUAL and decision.error_message is None
        event = _event(decision)
        data = {
            "url": visit.claim.page.url,
            "status": decision.status_code,
            "reason": decision.reason or None,
        }
        log.log(logging.DEBUG if usual else logging.INFO, event, extra={"data": data})


def _event(decision: Decision) -> str:
    if decision.doubtful:
        return "page doubted"
    return "page refused" if decision.refused else f"page {decision.outcome.replace('_', ' ')}"


@contextmanager
def run_span(source: Source, mode: RunMode) -> Iterator[Callable[[RunReport], RunReport]]:
    """A span for the work on a run in this process; what came of it is told at its end."""
    with span("run", {"afresh.source": source.label, "afresh.mode": str(mode)}) as note:

        def ended(report: RunReport) -> RunReport:
            names = ("checked", "new", "changed", "failed")
            counts = {f"afresh.{name}": getattr(report, name) for name in names}
            note.add({"afresh.run": report.run, "afresh.state": str(report.state), **counts})
            return report

        yield ended


def host_paused(domain: str, seconds: float) -> None:
    """A host asked to be left alone."""
    log.info("host paused", extra={"data": {"host": domain, "seconds": round(seconds)}})


def robots_unreachable(origin: str) -> None:
    """Nothing could be fetched because nobody knows what may be."""
    log.warning("robots.txt unreachable", extra={"data": {"site": origin}})
