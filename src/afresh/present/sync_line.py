from afresh.present.safe_text import clean
from afresh.present.wording import count, duration
from afresh.sync.reports import SyncReport


def line(report: SyncReport) -> str:
    """`team-search: 3 uploaded, 1 deleted in 0.2 s`."""
    names = ("uploaded", "replaced", "deleted", "waiting", "failed")
    done = [f"{count(number)} {name}" for name in names if (number := getattr(report, name))]
    what = f"{clean(report.sink)}: {', '.join(done) or 'in line'} in {duration(report.seconds)}"
    trouble = report.error or (report.failures[0].why if report.failures else None)
    return f"{what} ({clean(trouble)})" if trouble else what
