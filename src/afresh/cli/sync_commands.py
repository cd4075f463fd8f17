"""Commands that update copies: sync, reindex, init-kb."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from afresh.cli.session import Session
from afresh.cli.shell import command, labels, option, switch
from afresh.model.reports import ReindexReport
from afresh.ports import StoreAccess
from afresh.present.wording import clean, count, duration
from afresh.sync.reports import SyncReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from afresh.model.reports import KbReport


Report = TypeVar("Report")
STYLES = {"completed": "green", "planned": "cyan", "partial": "yellow"}


@command(
    "Keep fresh",
    "afresh sync",
    "afresh sync python-docs --to team-search",
    "afresh sync --dry-run",
    "afresh sync --verify                 # also list the stores and repair what is ours",
)
@labels()
@option("--to to", "SINK", "Only this external store; may be repeated.", multiple=True)
@switch("--dry-run dry_run", "Tell what would be done, and do nothing.")
@switch("--verify", "List what the stores hold, and repair what is missing, doubled, stale or orphaned.")
def sync(session: Session, labels: tuple[str, ...], to: tuple[str, ...], dry_run: bool, verify: bool) -> int:
    """Update the external stores that the settings name.

    What changed since the last sync is uploaded, what is gone is deleted, and nothing else is touched. A sync
    that was stopped goes on where it was.
    """
    from afresh.cli.progress import run

    done = run(
        session,
        lambda kb, hear: kb.sinks.sync(labels, to=to, dry_run=dry_run, verify=verify, listener=hear),
        access=StoreAccess.READ if dry_run else StoreAccess.CHANGE,
    )
    _show_all(session, done, draw)
    return exit_code(done)


def _show_all(session: Session, done: list[Report], draw: "Callable[[Report], Text]") -> None:
    if not session.wrote_json(done[0] if len(done) == 1 else done):
        for report in done:
            session.show(draw(report))


def _end(text: "Text", report: SyncReport | ReindexReport) -> "Text":
    """Add the error and the notes of a report to a text."""
    if report.error:
        text.append(f"  {clean(report.error)}\n", "red")
    for note in report.notes:
        text.append(f"  {clean(note)}\n", "dim")
    text.rstrip()
    return text


def exit_code(done: Sequence[SyncReport]) -> int:
    """Return 0 if every store is in sync or still processing within its deadline."""
    return int(any(report.state not in ("completed", "planned") for report in done))


def draw(report: SyncReport) -> "Text":
    from rich.text import Text

    numbers = ", ".join(map(str, report.runs))  # as `afresh attempts` takes them
    runs = f", {'run' if len(report.runs) == 1 else 'runs'} {numbers}" if numbers else ""
    text = Text.assemble(
        (clean(report.sink), "bold"),
        f" · {report.kind} · sync ",
        (report.state, STYLES.get(report.state, "red")),
        f" in {duration(report.seconds)}{runs}\n",
    )
    text.append(f"  {_done(report)}\n")
    if report.stuck:
        are = "is" if report.stuck == 1 else "are"
        text.append(
            f"  {count(report.stuck)} of those that wait {are} stuck: "
            "the next sync deletes and uploads again\n",
            "yellow",
        )
    if (audit := report.audit) is not None and (audit.listed or audit.missing):
        names = ("missing", "orphaned", "doubled", "stale", "adopted", "foreign")
        found = ", ".join(f"{count(getattr(audit, name))} {name}" for name in names)
        text.append(f"  listed {count(audit.listed, 'document')}: {found}\n", "dim")
        for name in audit.foreign_names:
            text.append(f"  not ours: {clean(name)}\n", "dim")
    for failure in report.failures:
        text.append(f"  {clean(failure.url)}: {clean(failure.why)}\n", "red")
    return _end(text, report)


def _done(report: SyncReport) -> str:
    """Return a line such as `3 uploaded, 1 deleted, …`, or of a dry run `would upload 3, 2 waiting`."""
    if not report.dry_run:
        names = ("uploaded", "replaced", "deleted", "verified", "waiting", "failed")
        return ", ".join(f"{count(getattr(report, name))} {name}" for name in names)
    planned = (("upload", report.uploaded), ("replace", report.replaced), ("delete", report.deleted))
    parts = [f"would {verb} {count(number, 'document')}" for verb, number in planned if number]
    parts += [
        f"{count(getattr(report, name))} {name}" for name in ("waiting", "failed") if getattr(report, name)
    ]
    return ", ".join(parts) or "nothing to do"


@command(
    "Keep fresh",
    "afresh reindex",
    "AFRESH_EMBEDDING__MODEL=quality afresh reindex      # better vectors, in the background",
)
@labels()
def reindex(session: Session, labels: tuple[str, ...]) -> int:
    """Rebuild chunks and embeddings after a model or settings change.

    Nothing is fetched: stored text is cut and embedded again. Searches are answered by the old vectors until
    every chunk of the store has a new one. A reindex that was stopped goes on where it was.
    """
    from afresh.cli.progress import run

    done = run(session, lambda kb, hear: kb.search.reindex(labels, listener=hear), access=StoreAccess.CHANGE)
    _show_all(session, done, draw_reindex)
    return int(any(report.state != "completed" for report in done))


def draw_reindex(report: ReindexReport) -> "Text":
    from rich.text import Text

    style = {"completed": "green", "partial": "yellow"}.get(report.state, "red")
    text = Text.assemble(
        (clean(report.source or "all sources"), "bold"),
        " · reindex ",
        (report.state, style),
        f" in {duration(report.seconds)}\n",
    )
    made = [f"{count(report.chunks_embedded, 'chunk')} embedded", f"{count(report.chunks_reused)} reused"]
    made += [f"{count(report.pages_cut, 'page')} cut anew"] if report.pages_cut else []
    text.append("  " + ", ".join(made) + "\n")
    text.append(f"  searches are answered by {report.serving or 'words alone'}\n", "dim")
    if report.left:
        text.append(f"  {count(report.left)} left: afresh reindex goes on with them\n", "yellow")
    return _end(text, report)


NAMED = 10  # failing links that are listed individually


@command(
    "Keep fresh",
    "afresh init-kb",
    "AFRESH_KB__SOURCES_DIR=notes afresh init-kb",
    "afresh init-kb --json | jq .summaries",
)
def init_kb(session: Session) -> int:
    """Update index.txt and its cache.

    Reads the files below kb.sources_dir that changed, asks for links of kb.links_file_path that are due,
    within kb.url_refresh_budget_per_init, and writes a summary of what is new or changed. The same is done
    by the command init_kb.
    """
    from afresh.cli import report
    from afresh.cli.progress import run

    done = run(session, lambda kb, hear: kb.digest.update(listener=hear))
    runs = [each for each in (done.files, done.links) if each is not None]
    if not session.wrote_json(done):
        if runs:
            session.show(report.draw_all(runs, verbose=session.verbose, quiet=session.quiet))
        session.write("\n".join([told(done), *failing(done)]))
    return 1 if done.failing_links else report.exit_code(runs)


def told(done: "KbReport") -> str:
    """Return a line such as `index.txt: 12 files, 3 links; 2 summaries made; 1 link is due and waits …`."""
    made = "nothing changed" if not done.written else f"{count(done.summaries, 'summary', 'summaries')} made"
    line = f"{done.index}: {count(done.file_records, 'file')}, {count(done.url_records, 'link')}; {made}"
    waits = "is due and waits" if done.due == 1 else "are due and wait"
    return f"{line}; {count(done.due, 'link')} {waits} for the next update" if done.due else line


def failing(done: "KbReport") -> list[str]:
    """Return lines such as `1 link cannot be read: URL (no answer; again after 2026-03-04 12:05 UTC)`."""
    if not done.failing_links:
        return []
    first = [
        f"{link.url} ({link.reason or 'its last check failed'}; again after {link.next_at:%Y-%m-%d %H:%M} UTC)"
        for link in done.failing_links[:NAMED]
    ]
    more = len(done.failing_links) - len(first)
    rest = f" and {more} more" if more else ""
    return [f"{count(len(done.failing_links), 'link')} cannot be read: {clean(', '.join(first))}{rest}"]
