"""The command that brings external stores in line with the pages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.cli.session import Session
from afresh.cli.shell import argument, command, option, switch
from afresh.ports import Access
from afresh.present.safe_text import clean
from afresh.present.wording import count, duration
from afresh.sync.reports import AuditView, SyncReport

if TYPE_CHECKING:
    from rich.text import Text

    from afresh.events import Listener
    from afresh.kb import KnowledgeBase


STYLES = {"completed": "green", "planned": "cyan", "partial": "yellow"}


@command(
    "Keep fresh",
    "afresh sync",
    "afresh sync python-docs --to team-search",
    "afresh sync --dry-run",
    "afresh sync --verify                 # also list the stores and repair what is ours",
)
@argument("labels", "[LABEL]...", "Sources, as NAME or NAME@VERSION; else all.", nargs=-1)
@option("--to", "to", metavar="SINK", multiple=True, text="Only this external store; may be repeated.")
@switch("--dry-run", "dry_run", text="Tell what would be done, and do nothing.")
@switch("--verify", text="List what the stores hold, and repair what is missing, doubled, stale or orphaned.")
def sync(session: Session, labels: tuple[str, ...], to: tuple[str, ...], dry_run: bool, verify: bool) -> int:
    """Bring the external stores that the settings name in line with the pages.

    What changed since the last sync is uploaded, what is gone is deleted, and nothing else is touched. A sync
    that was stopped goes on where it was.
    """

    async def work(kb: "KnowledgeBase", listener: "Listener") -> list[SyncReport]:
        return await kb.sinks.sync(labels, to=to, dry_run=dry_run, verify=verify, listener=listener)

    from afresh.cli.running import run

    done = run(session, work, access=Access.READ if dry_run else Access.CHANGE)
    if not session.wrote_json(done[0] if len(done) == 1 else done):
        for report in done:
            session.show(draw(report))
    return exit_code(done)


def exit_code(done: Sequence[SyncReport]) -> int:
    """0 when every store could be brought in line, or still works on it within its deadline."""
    return int(any(report.state not in ("completed", "planned") for report in done))


def draw(report: SyncReport) -> "Text":
    """What was done in a store, what is left, and why."""
    from rich.text import Text

    text = Text.assemble(
        (clean(report.sink), "bold"),
        f" · {report.kind} · sync ",
        (report.state, STYLES.get(report.state, "red")),
        f" in {duration(report.seconds)}{_numbers(report)}\n",
    )
    text.append(f"  {_done(report)}\n")
    if report.stuck:
        are = "is" if report.stuck == 1 else "are"
        text.append(
            f"  {count(report.stuck)} of those that wait {are} stuck: "
            "the next sync deletes and uploads again\n",
            "yellow",
        )
    if report.audit is not None and is_telling(report.audit):
        text.append(f"  {audit_line(report.audit)}\n", "dim")
        for name in report.audit.foreign_names:
            text.append(f"  not ours: {clean(name)}\n", "dim")
    for failure in report.failures:
        text.append(f"  {clean(failure.url)}: {clean(failure.why)}\n", "red")
    if report.error:
        text.append(f"  {clean(report.error)}\n", "red")
    for note in report.notes:
        text.append(f"  {clean(note)}\n", "dim")
    text.rstrip()
    return text


def _numbers(report: SyncReport) -> str:
    """`, run 12`: what `afresh attempts` takes."""
    if not report.runs:
        return ""
    return f", {'run' if len(report.runs) == 1 else 'runs'} {', '.join(map(str, report.runs))}"


def _done(report: SyncReport) -> str:
    """`3 uploaded, 1 deleted, …`; of a dry run `would upload 3, would delete 1, 2 waiting`."""
    if not report.dry_run:
        names = ("uploaded", "replaced", "deleted", "verified", "waiting", "failed")
        return ", ".join(f"{count(getattr(report, name))} {name}" for name in names)
    planned = (("upload", report.uploaded), ("replace", report.replaced), ("delete", report.deleted))
    parts = [f"would {verb} {count(number, 'document')}" for verb, number in planned if number]
    parts += [
        f"{count(getattr(report, name))} {name}" for name in ("waiting", "failed") if getattr(report, name)
    ]
    return ", ".join(parts) or "nothing to do"


def is_telling(audit: AuditView) -> bool:
    """Whether a listing showed anything at all."""
    return bool(audit.listed or audit.missing)


def audit_line(audit: AuditView) -> str:
    """`listed 120: 1 missing, 0 orphaned, …`."""
    names = ("missing", "orphaned", "doubled", "stale", "adopted", "foreign")
    found = ", ".join(f"{count(getattr(audit, name))} {name}" for name in names)
    return f"listed {count(audit.listed, 'document')}: {found}"
