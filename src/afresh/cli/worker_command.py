"""The command that is one more worker."""

import sys
from typing import TYPE_CHECKING

import click

from afresh.cli.session import Session
from afresh.cli.shell import command, option, switch
from afresh.cli.watch_command import calmly, line
from afresh.model.reports import RunReport
from afresh.ports import Access

if TYPE_CHECKING:
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase


@command(
    "Keep fresh",
    "afresh crawl https://docs.python.org/3/ --detach && afresh worker --once",
    "afresh worker --store postgresql://db.internal/afresh",
    "afresh worker --sources react,vue@3 --concurrency 8",
    "afresh worker --json | jq .changed",
)
@option(
    "--concurrency",
    metavar="N",
    type=click.IntRange(1, 64),
    default=4,
    text="Sources looked at side by side (4).",
)
@option("--sources", metavar="A,B", text="Only these, as NAME or NAME@VERSION.")
@switch("--once", text="End when there is nothing to do; 1 if a run failed.")
def worker(session: Session, concurrency: int, sources: str | None, once: bool) -> int:
    """Work on the runs that are open in the store, until Ctrl-C.

    Takes up runs that were started with --detach or whose process died, and lends a hand in those of other
    workers, here or on other machines. Told to stop, it finishes or gives back what is under way within
    seconds; others go on. One line tells of each run that ends; with --json one object per line.
    """
    labels = [each.strip() for each in (sources or "").split(",") if each.strip()]
    done: list[RunReport] = []

    def tell(report: RunReport) -> None:
        done.append(report)
        if session.json:
            from afresh.present.as_json import write_line

            write_line(report, sys.stdout)
        else:
            session.write(line(report))
            sys.stdout.flush()

    async def work(kb: "KnowledgeBase", listener: "Listener") -> bool:
        return await kb.runs.work(labels, at_once=concurrency, once=once, tell=tell, listener=listener)

    from afresh.cli import report
    from afresh.cli.running import run

    well = run(session, work, access=Access.CHANGE, shown=calmly, stays=True)
    return report.exit_code(done) if once and well else int(once)
