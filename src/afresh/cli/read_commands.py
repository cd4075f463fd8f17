"""Commands that read: open, sources, show, pages, links, attempts, history, changes, why, status, runs."""

from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

import click

from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, option, switch
from afresh.errors import UsageError, without_former_text
from afresh.model.fetch import Outcome
from afresh.model.filters import PageFilter
from afresh.model.records import Attempt, ChangeKind, PageStatus, RunMode
from afresh.model.reports import ChangeView, HistoryEntry, LinkView, PageView, RunReport, SourceView
from afresh.ports import StoreAccess
from afresh.present.wording import clean
from afresh.sync.reports import DocumentOutcome, SyncedDocument

Word = TypeVar("Word", bound=StrEnum)
LABEL = ("label", "LABEL", "The source, as NAME or NAME@VERSION.")
URL = ("url", "URL", "Address of the page.")
AT_LEAST_ONE = click.IntRange(min=1, max=2**31 - 1)

within = option("--in within", "LABEL", "Only this source, as NAME or NAME@VERSION.")
at_most = option("--limit", "N", "Rows at most; else all.", type=AT_LEAST_ONE)


@command("Find", "afresh sources", "afresh sources --json")
@as_rows
def sources(session: Session) -> None:
    """List the sources."""
    views = session.ask(lambda kb: kb.sources.views())
    if not session.wrote_rows(views, SourceView):
        from afresh.cli import lists

        session.show(lists.sources(views, session.now))


@command("Inspect", "afresh show react@19")
@argument(*LABEL)
def show(session: Session, label: str) -> None:
    """Show one source with its counts and rules."""
    view = session.ask(lambda kb: kb.sources.view(label))
    if not session.wrote_json(view):
        from afresh.cli import lists

        session.show(lists.source(view, session.now))


@command("Inspect", "afresh pages react@19 --text hooks", "afresh pages react@19 --status error")
@argument(*LABEL)
@option("--status", "STATUS", "Only pages in this state, as active or error.")
@switch("--all everything", "Also deleted pages and redirects.")
@switch("--doubtful", "Only pages that show what is not believed, or lost nearly all text.")
@option("--language", "TAG", "Only pages in this language, as en or pt-BR.")
@option("--depth", "N", "Only pages this many links from the root.", type=click.IntRange(0, 1_000))
@option("--text", "WORDS", "Only pages with this in their address or title.")
@at_most
@as_rows
def pages(
    session: Session,
    label: str,
    status: str | None,
    everything: bool,
    doubtful: bool,
    language: str | None,
    depth: int | None,
    text: str | None,
    limit: int | None,
) -> None:
    """List the pages of a source."""
    which = PageFilter(
        status=one_of(PageStatus, "--status", status),
        everything=everything,
        doubtful=doubtful,
        language=language,
        depth=depth,
        text=text,
    )
    views = session.ask(lambda kb: kb.pages.of_source(label, which, limit=limit))
    if not session.wrote_rows(views, PageView):
        from afresh.cli import lists

        session.show(lists.doubts(views, session.now) if doubtful else lists.pages(views, session.now))


@command(
    "Inspect",
    "afresh links react@19 --page https://react.dev/reference/react",
    "afresh links city --keyword budget --min-score 0.5 --csv",
)
@argument(*LABEL)
@option("--page", "URL", "Only links that stand on this page.")
@option("--keyword", "WORD", "Only links that this keyword fits.")
@option("--min-score", "S", "Only links worth at least this.", type=click.FloatRange(0, 2))
@at_most
@as_rows
def links(
    session: Session,
    label: str,
    page: str | None,
    keyword: str | None,
    min_score: float | None,
    limit: int | None,
) -> None:
    """List the links of a source, highest score first.

    Links are scored by the keywords of their source: `afresh crawl TARGET --keywords budget,contact:0.5`.
    With -v each is listed with the reason and a page it stands on.
    """
    from afresh.cli import lists as link_lists

    views = session.ask(
        lambda kb: kb.links.of_source(label, page=page, keyword=keyword, min_score=min_score, limit=limit)
    )
    if not views and (page or keyword):
        for reason in session.ask(lambda kb: link_lists.why_none(kb, label, page, keyword)):
            session.say(reason)
    if session.wrote_rows(views, LinkView):
        return
    session.show(link_lists.links(views, whole=session.verbose > 0))


@command("Inspect", "afresh attempts 12", "afresh attempts 12 --outcome failed --json")
@argument("run", "RUN", "The number of the run; `afresh runs` tells it.", type=click.IntRange(min=1))
@option("--outcome", "OUTCOME", "Only what ended so, as failed, timeout or (of a sync) stuck.")
@option("--limit", "N", "Attempts at most.", type=AT_LEAST_ONE, default=50, show_default=True)
@as_rows
def attempts(session: Session, run: int, outcome: str | None, limit: int) -> None:
    """List the attempts of a run, failures first, with the evidence of each.

    Of a sync it lists the documents that it did something about, as it left each and as it is now.
    """
    from afresh.cli import lists

    if session.ask(lambda kb: kb.runs.get(run)).mode == RunMode.SYNC:
        of_sync = one_of(DocumentOutcome, "--outcome", outcome)
        found = session.ask(lambda kb: kb.runs.documents(run, outcome=of_sync, limit=limit))
        if not session.wrote_rows(found, SyncedDocument):
            session.show(lists.documents_of_run(found))
        return
    only = one_of(Outcome, "--outcome", outcome)
    rows = session.ask(lambda kb: kb.runs.attempts(run, outcome=only, limit=limit))
    if not session.wrote_rows(rows, Attempt):
        session.show(lists.attempts_of_run(rows))


@command("Inspect", "afresh history https://react.dev/reference/react")
@argument(*URL)
@within
@as_rows
def history(session: Session, url: str, within: str | None) -> None:
    """List every attempt to fetch a page, with its outcome."""
    rows = session.ask(lambda kb: kb.pages.history(url, within=within))
    if not session.wrote_rows(rows, HistoryEntry):
        from afresh.cli import lists

        session.show(lists.attempts(rows, session.now))


@command(
    "Inspect",
    "afresh changes",
    "afresh changes react@19 --run 7 --no-diff",
    "afresh changes --url https://react.dev/learn",
)
@argument("label", "[LABEL]", "The source; else all.", required=False)
@option("--run", "N", "Only what this run found.", type=int)
@option("--url", "URL", "Only of the page at this address.")
@option("--kind", "KIND", "Only new, changed, deleted or moved pages.")
@option("--limit", "N", "Changes at most.", type=AT_LEAST_ONE, default=50, show_default=True)
@click.option("--diff/--no-diff", default=True, help="Show what changed inside the pages, or only which.")
@as_rows
def changes(
    session: Session,
    label: str | None,
    run: int | None,
    url: str | None,
    kind: str | None,
    limit: int,
    diff: bool,
) -> None:
    """Show new, changed, deleted and moved pages, with diffs."""
    from afresh.sources.detect import address

    only = one_of(ChangeKind, "--kind", kind)
    place = address(url) if url is not None else None
    found = session.ask(lambda kb: kb.pages.changes(label, run=run, url=place, kind=only, limit=limit))
    views = found if diff else [replace(view, diff=None) for view in found]
    if not session.wrote_rows(views, ChangeView):
        from afresh.cli import lists

        session.show(lists.changes(views, session.now, whole=session.verbose > 0))


@command("Inspect", "afresh why https://react.dev/reference/react")
@argument(*URL)
@within
@switch("--former", "Print the text that a flagged page had before it lost nearly all of it.")
def why(session: Session, url: str, within: str | None, former: bool) -> None:
    """Explain the current state of a page, with the evidence."""
    view = session.ask(lambda kb: kb.pages.explain(url, within=within))
    if former and view.former is None:
        raise UsageError(without_former_text(view.url))
    if not session.wrote_json(view):
        from afresh.cli import details

        session.show(details.former(view) if former else details.why(view, session.now))


@command("Inspect", "afresh status")
def status(session: Session) -> None:
    """Show an overview of the store: sizes, waiting work, runs that need attention."""
    view = session.ask(lambda kb: kb.status.get())
    if not session.wrote_json(view):
        from afresh.cli import details

        session.show(details.status(view, session.now))


@command("Inspect", "afresh runs", "afresh runs react@19 --limit 5")
@argument("label", "[LABEL]", "The source, or a library; else all.", required=False)
@option("--limit", "N", "Runs at most.", type=AT_LEAST_ONE, default=20, show_default=True)
@as_rows
def runs(session: Session, label: str | None, limit: int) -> None:
    """List runs, newest first: finished, active and queued."""
    found = session.ask(lambda kb: kb.runs.latest(label))[:limit]
    if not session.wrote_rows(found, RunReport):
        from afresh.cli import lists

        session.show(lists.runs(found))


def one_of(kind: type[Word], flag: str, word: str | None) -> Word | None:
    """Return a typed word as a member of an enum; None if none was typed."""
    if word is None:
        return None
    try:
        return kind(word.lower())
    except ValueError:
        raise UsageError(f"{flag}: expected one of {', '.join(kind)}, got {word!r}") from None


@command(
    "Find",
    "afresh open https://react.dev/reference/react",
    "afresh open react.dev/reference/react --in react@18 | less",
    name="open",
)
@argument("url", "URL", "Address of the page.")
@option("--in within", "LABEL", "Only this source, as NAME, NAME@VERSION or NAME@RANGE.")
@switch("--former", "The text that a flagged page had before it lost nearly all of it.")
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
@argument("url", "URL", "Address of the page.")
@option("--in within", "LABEL", "Only this source, as NAME or NAME@VERSION.")
def restore(session: Session, url: str, within: str | None) -> None:
    """Restore the former text of a page that lost nearly all of it, until the page changes."""
    view = session.ask(lambda kb: kb.pages.restore(url, within=within), access=StoreAccess.CHANGE)
    if session.wrote_json(view):
        return
    session.show(clean(f"{view.url} has its former text again: {len(view.markdown):,} characters."))


@command(
    "Find",
    "afresh find-version react@^18",
    "afresh find-version 'react@>=17 <19' --json",
    name="find-version",
)
@argument("label", "LABEL", "NAME, or NAME@ and a version or a range: 18, 18.2.x, ^18, '>=17 <19'.")
def find_version(session: Session, label: str) -> None:
    """Show which version of a source a name or a range means."""
    view = session.ask(lambda kb: kb.sources.find_version(label))
    if not session.wrote_json(view):
        from afresh.cli import details

        session.show(details.version(view))
