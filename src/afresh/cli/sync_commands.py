"""Commands that update copies: sync, reindex, init-kb."""

from collections.abc import Sequence

from afresh.cli.session import Session
from afresh.cli.shell import command, labels, option, switch
from afresh.model.reports import KbReport, ReindexReport
from afresh.ports import StoreAccess
from afresh.present.wording import clean, count
from afresh.sync.reports import SyncReport

MAX_FAILING = 10  # links that are listed individually


@command(
    "Keep fresh",
    "afresh sync",
    "afresh sync python-docs --to team-search",
    "afresh sync --dry-run",
    "afresh sync --verify                 # also list the stores and repair them",
)
@labels()
@option("--to to", "SINK", "Only this external store; may be repeated.", multiple=True)
@switch("--dry-run dry_run", "Only show what would be done.")
@switch("--verify", "List the documents of the stores, and repair missing, duplicate, stale and orphaned ones.")
def sync(session: Session, labels: tuple[str, ...], to: tuple[str, ...], dry_run: bool, verify: bool) -> int:
    """Update the external stores that the settings define under `sinks`.

    Uploads what changed since the last sync and deletes what is gone. A sync that was stopped continues where
    it was.
    """
    from afresh.cli.progress import run

    done = run(
        session,
        lambda kb, listener: kb.sinks.sync(labels, to=to, dry_run=dry_run, verify=verify, listener=listener),
        access=StoreAccess.READ if dry_run else StoreAccess.CHANGE,
    )
    _show_all(session, done)
    return exit_code(done)


def _show_all(session: Session, done: Sequence[SyncReport | ReindexReport]) -> None:
    if not session.wrote_json(done[0] if len(done) == 1 else done):
        from afresh.cli.report import draw_reindex, draw_sync

        for report in done:
            session.show(draw_sync(report) if isinstance(report, SyncReport) else draw_reindex(report))


def exit_code(done: Sequence[SyncReport]) -> int:
    """Return 0 if every external store is in sync or still processing within its deadline, else 1."""
    return int(any(report.state not in ("completed", "planned") for report in done))


@command(
    "Keep fresh",
    "afresh reindex",
    "AFRESH_EMBEDDING__MODEL=quality afresh reindex      # better vectors, in the background",
)
@labels()
def reindex(session: Session, labels: tuple[str, ...]) -> int:
    """Rebuild passages and embeddings after a model or settings change.

    Nothing is fetched: stored text is split into passages and embedded again. Searches use the old vectors until
    every passage of the store has a new one. A reindex that was stopped continues where it was.
    """
    from afresh.cli.progress import run

    done = run(session, lambda kb, listener: kb.search.reindex(labels, listener=listener), access=StoreAccess.CHANGE)
    _show_all(session, done)
    return int(any(report.state != "completed" for report in done))


@command(
    "Keep fresh",
    "afresh init-kb",
    "AFRESH_KB__SOURCES_DIR=notes afresh init-kb",
    "afresh init-kb --json | jq .summaries",
)
def init_kb(session: Session) -> int:
    """Update index.txt and its cache.

    Reads changed files below kb.sources_dir, checks due links of kb.links_file_path (at most
    kb.url_refresh_budget_per_init), and summarises what is new or changed. The command init_kb does the same.
    """
    from afresh.cli import report
    from afresh.cli.progress import run

    done = run(session, lambda kb, listener: kb.digest.update(listener=listener))
    runs = [each for each in (done.files, done.links) if each is not None]
    if not session.wrote_json(done):
        if runs:
            session.show(report.draw_all(runs, verbose=session.verbose, quiet=session.quiet))
        session.write("\n".join([summary_line(done), *failing_lines(done)]))
    return 1 if done.failing_links else report.exit_code(runs)


def summary_line(done: KbReport) -> str:
    """Return a line such as `index.txt: 12 files, 3 links; 2 summaries made; 1 link is due …`."""
    made = "nothing changed" if not done.written else f"{count(done.summaries, 'summary', 'summaries')} made"
    line = f"{done.index}: {count(done.file_records, 'file')}, {count(done.url_records, 'link')}; {made}"
    are = "is" if done.due == 1 else "are"
    return f"{line}; {count(done.due, 'link')} {are} due at the next update" if done.due else line


def failing_lines(done: KbReport) -> list[str]:
    """Return lines such as `1 link cannot be read: URL (no answer; next check after 2026-03-04 12:05 UTC)`."""
    if not done.failing_links:
        return []
    first = [
        f"{link.url} ({link.reason or 'its last check failed'}; next check after {link.next_at:%Y-%m-%d %H:%M} UTC)"
        for link in done.failing_links[:MAX_FAILING]
    ]
    more = len(done.failing_links) - len(first)
    rest = f" and {more} more" if more else ""
    return [f"{count(len(done.failing_links), 'link')} cannot be read: {clean(', '.join(first))}{rest}"]
