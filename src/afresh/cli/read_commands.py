"""The commands that read: sources, show, pages, links, history, changes, why, status."""

from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

import click

from afresh.cli import open_commands, search_commands
from afresh.cli.mcp_command import mcp
from afresh.cli.session import Session
from afresh.cli.shell import argument, as_rows, command, option, switch
from afresh.errors import UsageError, without_former_text
from afresh.model.fetch import Outcome
from afresh.model.filters import PageFilter
from afresh.model.history import HistoryEntry
from afresh.model.records import Attempt, ChangeKind, PageStatus, RunMode
from afresh.model.reports import ChangeView, LinkView, PageView, RunReport, SourceView
from afresh.sync.reports import DocumentOutcome, SyncedDocument

Word = TypeVar("Word", bound=StrEnum)
LABEL = ("label", "LABEL", "The source, as NAME or NAME@VERSION.")
URL = ("url", "URL", "Address of the page.")
AT_LEAST_ONE = click.IntRange(min=1, max=2**31 - 1)

within = option("--in", "within", metavar="LABEL", text="Only this source, as NAME or NAME@VERSION.")
at_most = option("--limit", metavar="N", type=AT_LEAST_ONE, text="Rows at most; else all.")


@command("Find", "afresh sources", "afresh sources --json")
@as_rows
def sources(session: Session) -> None:
    """List what is kept fresh."""
    views = session.ask(lambda kb: kb.sources.views())
    if session.wrote_rows(views, SourceView):
        return
    from afresh.cli import lists

    session.show(lists.sources(views, session.now))


@command("Look into", "afresh show react@19")
@argument(*LABEL)
def show(session: Session, label: str) -> None:
    """Show one source with its numbers and rules."""
    view = session.ask(lambda kb: kb.sources.view(label))
    if session.wrote_json(view):
        return
    from afresh.cli import lists

    session.show(lists.source(view, session.now))


@command("Look into", "afresh pages react@19 --text hooks", "afresh pages react@19 --status error")
@argument(*LABEL)
@option("--status", metavar="STATUS", text="Only pages in this state, as active or error.")
@switch("--all", "everything", text="Also deleted pages and redirects.")
@switch("--doubtful", text="Only pages that show what is not believed, or lost nearly all text.")
@option("--language", metavar="TAG", text="Only pages in this language, as en or pt-BR.")
@option(
    "--depth", metavar="N", type=click.IntRange(0, 1_000), text="Only pages this many links from the root."
)
@option("--text", metavar="WORDS", text="Only pages with this in their address or title.")
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
    if session.wrote_rows(views, PageView):
        return
    from afresh.cli import lists

    session.show(lists.doubts(views, session.now) if doubtful else lists.pages(views, session.now))


@command(
    "Look into",
    "afresh links react@19 --page https://react.dev/reference/react",
    "afresh links city --keyword budget --min-score 0.5 --csv",
)
@argument(*LABEL)
@option("--page", metavar="URL", text="Only links that stand on this page.")
@option("--keyword", metavar="WORD", text="Only links that this keyword fits.")
@option("--min-score", metavar="S", type=click.FloatRange(0, 2), text="Only links worth at least this.")
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
    """List the links that the pages of a source carry, those worth most first.

    Links are scored by the keywords of their source: `afresh crawl TARGET --keywords budget,contact:0.5`.
    With -v each is listed with the reason and a page it stands on.
    """
    from afresh.cli import link_lists

    views = session.ask(
        lambda kb: kb.links.of_source(label, page=page, keyword=keyword, min_score=min_score, limit=limit)
    )
    if not views and (page or keyword):
        for reason in session.ask(lambda kb: link_lists.why_none(kb, label, page, keyword)):
            session.say(reason)
    if session.wrote_rows(views, LinkView):
        return
    session.show(link_lists.links(views, whole=session.verbose > 0))


@command("Look into", "afresh attempts 12", "afresh attempts 12 --outcome failed --json")
@argument("run", "RUN", "The number of the run; `afresh runs` tells it.", type=click.IntRange(min=1))
@option("--outcome", metavar="OUTCOME", text="Only what ended so, as failed, timeout or (of a sync) stuck.")
@option("--limit", metavar="N", type=AT_LEAST_ONE, default=50, show_default=True, text="Attempts at most.")
@as_rows
def attempts(session: Session, run: int, outcome: str | None, limit: int) -> None:
    """List what a run looked at, what went wrong first, with the evidence of each.

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


@command("Look into", "afresh history https://react.dev/reference/react")
@argument(*URL)
@within
@as_rows
def history(session: Session, url: str, within: str | None) -> None:
    """List every attempt to look at a page, with its outcome."""
    rows = session.ask(lambda kb: kb.pages.history(url, within=within))
    if session.wrote_rows(rows, HistoryEntry):
        return
    from afresh.cli import lists

    session.show(lists.attempts(rows, session.now))


@command(
    "Look into",
    "afresh changes",
    "afresh changes react@19 --run 7 --no-diff",
    "afresh changes --url https://react.dev/learn",
)
@argument("label", "[LABEL]", "The source; else all.", required=False)
@option("--run", metavar="N", type=int, text="Only what this run found.")
@option("--url", metavar="URL", text="Only of the page at this address.")
@option("--kind", metavar="KIND", text="Only new, changed, deleted or moved pages.")
@option("--limit", metavar="N", type=AT_LEAST_ONE, default=50, show_default=True, text="Changes at most.")
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
    """Show what is new, changed, deleted or moved, with the difference."""
    only = one_of(ChangeKind, "--kind", kind)
    found = session.ask(lambda kb: kb.pages.changes(label, run=run, url=url, kind=only, limit=limit))
    views = found if diff else [replace(view, diff=None) for view in found]
    if session.wrote_rows(views, ChangeView):
        return
    from afresh.cli import lists

    session.show(lists.changes(views, session.now, whole=session.verbose > 0))


@command("Look into", "afresh why https://react.dev/reference/react")
@argument(*URL)
@within
@switch("--former", text="Print the text that a flagged page had before it lost nearly all of it.")
def why(session: Session, url: str, within: str | None, former: bool) -> None:
    """Tell why a page is in its present state, with the evidence."""
    view = session.ask(lambda kb: kb.pages.explain(url, within=within))
    if former and view.former is None:
        raise UsageError(without_former_text(view.url))
    if session.wrote_json(view):
        return
    from afresh.cli import details

    session.show(details.former(view) if former else details.why(view, session.now))


@command("Look into", "afresh status")
def status(session: Session) -> None:
    """Show the store at a glance: sizes, waiting work, runs that need attention."""
    view = session.ask(lambda kb: kb.status.get())
    if session.wrote_json(view):
        return
    from afresh.cli import details

    session.show(details.status(view, session.now))


@command("Look into", "afresh runs", "afresh runs react@19 --limit 5")
@argument("label", "[LABEL]", "The source, or a library; else all.", required=False)
@option("--limit", metavar="N", type=AT_LEAST_ONE, default=20, show_default=True, text="Runs at most.")
@as_rows
def runs(session: Session, label: str | None, limit: int) -> None:
    """List runs, newest first: what was done, is being done and waits."""
    found = session.ask(lambda kb: kb.runs.latest(label))[:limit]
    if session.wrote_rows(found, RunReport):
        return
    from afresh.cli import lists

    session.show(lists.runs(found))


def one_of(kind: type[Word], flag: str, word: str | None) -> Word | None:
    """What was typed as one of the words that there are; None: nothing was."""
    if word is None:
        return None
    try:
        return kind(word.lower())
    except ValueError:
        raise UsageError(f"{flag}: expected one of {', '.join(kind)}, got {word!r}") from None


COMMANDS = (
    *search_commands.COMMANDS,
    mcp,
    *open_commands.COMMANDS,
    sources,
    show,
    pages,
    links,
    history,
    attempts,
    changes,
    why,
    runs,
    status,
)
