"""Commands that read: open, sources, show, pages, links, attempts, history, changes, why, status, runs."""

from typing import Any

import click

from afresh.cli.session import Session
from afresh.cli.shell import LABEL, argument, as_rows, command, one_of, option, switch
from afresh.dataclass import replace
from afresh.errors import UsageError, no_former_text_message
from afresh.model.fetch import Outcome
from afresh.model.filters import PageFilter
from afresh.model.records import Attempt, ChangeKind, PageStatus, RunMode
from afresh.model.reports import ChangeView, HistoryEntry, LinkView, PageView, RunReport, SourceView
from afresh.ports import StoreAccess
from afresh.sync.reports import DocumentOutcome, SyncedDocument

URL = ("url", "URL", "URL of the page.")
AT_LEAST_ONE = click.IntRange(min=1, max=2**31 - 1)

within = option("--in within", "LABEL", "Only this source, as NAME or NAME@VERSION.")
at_most = option("--limit", "N", "Maximum rows (default: all).", type=AT_LEAST_ONE)


@command("Find", "afresh sources", "afresh sources --json")
@as_rows
def sources(session: Session) -> None:
    """List the sources."""
    session.answer(session.ask(lambda kb: kb.sources.views()), "lists.sources", session.now, rows=SourceView)


@command("Inspect", "afresh show react@19")
@argument(*LABEL)
def show(session: Session, label: str) -> None:
    """Show one source with its counts and rules."""
    session.answer(session.ask(lambda kb: kb.sources.view(label)), "lists.source", session.now)


@command("Inspect", "afresh pages react@19 --text hooks", "afresh pages react@19 --status error")
@argument(*LABEL)
@option("--status", "STATUS", "Only pages with this status, such as active or error.")
@switch("--all everything", "Also deleted pages and redirects.")
@switch("--doubtful", "Only doubtful pages: they look like an error, login or empty page.")
@option("--language", "TAG", "Only pages in this language, such as en or pt-BR.")
@option("--depth", "N", "Only pages this many links from the start page.", type=click.IntRange(0, 1_000))
@option("--text", "WORDS", "Only pages with this text in their URL or title.")
@at_most
@as_rows
def pages(session: Session, label: str, status: str | None, limit: int | None, **filters: Any) -> None:
    """List the pages of a source."""
    which = PageFilter(status=one_of(PageStatus, "--status", status), **filters)
    views = session.ask(lambda kb: kb.pages.of_source(label, which, limit=limit))
    session.answer(views, "lists.doubts" if which.doubtful else "lists.pages", session.now, rows=PageView)


@command(
    "Inspect",
    "afresh links react@19 --page https://react.dev/reference/react",
    "afresh links city --keyword budget --min-score 0.5 --csv",
)
@argument(*LABEL)
@option("--page", "URL", "Only links on this page.")
@option("--keyword", "WORD", "Only links that match this keyword.")
@option("--min-score", "S", "Minimum score.", type=click.FloatRange(0, 2))
@at_most
@as_rows
def links(
    session: Session, label: str, page: str | None, keyword: str | None, min_score: float | None, limit: int | None
) -> None:
    """List the links of a source, highest score first.

    Links are scored by the keywords of their source: `afresh crawl TARGET --keywords budget,contact:0.5`.
    With -v, each line also shows the reason for the score and a page with that link.
    """
    views = session.ask(
        lambda kb: kb.links.of_source(label, page=page, keyword=keyword, min_score=min_score, limit=limit)
    )
    if not views and (page or keyword):
        from afresh.cli.lists import why_none

        for reason in session.ask(lambda kb: why_none(kb, label, page, keyword)):
            session.say(reason)
    session.answer(views, "lists.links", rows=LinkView, whole=session.verbose > 0)


@command("Inspect", "afresh attempts 12", "afresh attempts 12 --outcome failed --json")
@argument("run", "RUN", "Number of the run in `afresh runs`.", type=click.IntRange(min=1))
@option("--outcome", "OUTCOME", "Only this outcome, such as failed or timeout, or uploaded (of a sync run).")
@option("--limit", "N", "Maximum attempts.", type=AT_LEAST_ONE, default=50, show_default=True)
@as_rows
def attempts(session: Session, run: int, outcome: str | None, limit: int) -> None:
    """List the attempts of a run, failures first, with the reason of each.

    For a sync run, list the processed documents, each with its state after the sync and its state now.
    """
    if session.ask(lambda kb: kb.runs.get(run)).mode == RunMode.SYNC:
        of_sync = one_of(DocumentOutcome, "--outcome", outcome)
        found = session.ask(lambda kb: kb.runs.documents(run, outcome=of_sync, limit=limit))
        session.answer(found, "lists.documents_of_run", rows=SyncedDocument)
        return
    only = one_of(Outcome, "--outcome", outcome)
    rows = session.ask(lambda kb: kb.runs.attempts(run, outcome=only, limit=limit))
    session.answer(rows, "lists.attempts_of_run", rows=Attempt)


@command("Inspect", "afresh history https://react.dev/reference/react")
@argument(*URL)
@within
@as_rows
def history(session: Session, url: str, within: str | None) -> None:
    """List every attempt to fetch a page, with its outcome."""
    rows = session.ask(lambda kb: kb.pages.history(url, within=within))
    session.answer(rows, "lists.attempts", session.now, rows=HistoryEntry)


@command(
    "Inspect",
    "afresh changes",
    "afresh changes react@19 --run 7 --no-diff",
    "afresh changes --url https://react.dev/learn",
)
@argument("label", "[LABEL]", "The source (default: all).", required=False)
@option("--run", "N", "Only changes found by this run.", type=int)
@option("--url", "URL", "Only changes of this page.")
@option("--kind", "KIND", "Only changes of this kind: new, changed, deleted or moved.")
@option("--limit", "N", "Maximum changes.", type=AT_LEAST_ONE, default=50, show_default=True)
@click.option("--diff/--no-diff", default=True, help="Show the differences, or only which pages changed.")
@as_rows
def changes(
    session: Session, label: str | None, run: int | None, url: str | None, kind: str | None, limit: int, diff: bool
) -> None:
    """Show new, changed, deleted and moved pages, with diffs."""
    from afresh.sources.detect import address

    only = one_of(ChangeKind, "--kind", kind)
    place = address(url) if url is not None else None
    found = session.ask(lambda kb: kb.pages.changes(label, run=run, url=place, kind=only, limit=limit))
    views = found if diff else [replace(view, diff=None) for view in found]
    session.answer(views, "lists.changes", session.now, whole=session.verbose > 0, rows=ChangeView)


@command("Inspect", "afresh why https://react.dev/reference/react")
@argument(*URL)
@within
@switch("--former", "Print the text that the page had before it lost nearly all of its text.")
def why(session: Session, url: str, within: str | None, former: bool) -> None:
    """Explain the current state of a page."""
    view = session.ask(lambda kb: kb.pages.explain(url, within=within))
    if former and view.former is None:
        raise UsageError(no_former_text_message(view.url))
    session.answer(view, "details.former" if former else "details.why", session.now)


@command("Inspect", "afresh status")
def status(session: Session) -> None:
    """Show an overview of the store: sizes, waiting work, runs that need attention."""
    session.answer(session.ask(lambda kb: kb.status.get()), "details.status", session.now)


@command("Inspect", "afresh runs", "afresh runs react@19 --limit 5")
@argument("label", "[LABEL]", "The source, or a library (default: all).", required=False)
@option("--limit", "N", "Maximum runs.", type=AT_LEAST_ONE, default=20, show_default=True)
@as_rows
def runs(session: Session, label: str | None, limit: int) -> None:
    """List runs, newest first: finished, active and queued."""
    among = session.ask(lambda kb: kb.sources.ids(label)) if label else None
    session.answer(session.ask(lambda kb: kb.runs.records(among, limit=limit)), "lists.runs", rows=RunReport)


@command(
    "Find",
    "afresh open https://react.dev/reference/react",
    "afresh open react.dev/reference/react --in react@18 | less",
    name="open",
)
@argument(*URL)
@option("--in within", "LABEL", "Only this source, as NAME, NAME@VERSION or NAME@RANGE.")
@switch("--former", "Print the text that the page had before it lost nearly all of its text.")
def open_page(session: Session, url: str, within: str | None, former: bool) -> None:
    """Print a stored page as Markdown."""
    view = session.ask(lambda kb: kb.pages.open(url, within=within, former=former))
    if session.wrote_json(view):
        return
    if session.out.is_terminal and not session.quiet:
        from afresh.cli import details

        session.show(details.heading(view, session.now))
    session.write(view.markdown)


@command("Manage", "afresh restore https://react.dev/learn")
@argument(*URL)
@within
def restore(session: Session, url: str, within: str | None) -> None:
    """Restore the former text of a page that lost nearly all of its text, until the page changes."""
    view = session.ask(lambda kb: kb.pages.restore(url, within=within), access=StoreAccess.CHANGE)
    session.inform(view, f"Restored the former text of {view.url}: {len(view.markdown):,} characters.")


@command("Find", "afresh find-version react@^18", "afresh find-version 'react@>=17 <19' --json", name="find-version")
@argument("label", "LABEL", "NAME, or NAME@ with a version or a range: 18, 18.2.x, ^18, '>=17 <19'.")
def find_version(session: Session, label: str) -> None:
    """Show which version of a source matches a name or a range."""
    session.answer(session.ask(lambda kb: kb.sources.find_version(label)), "details.version")
