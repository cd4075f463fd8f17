"""The commands that start runs or speak about them: crawl, refresh, plan, confirm."""

import shlex
from typing import TYPE_CHECKING

import click

from afresh.cli.crawl_flags import check_flags, check_label, given, keywords, limit, split
from afresh.cli.kb_command import init_kb
from afresh.cli.reindex_command import reindex
from afresh.cli.schedule_command import schedule
from afresh.cli.serve_command import serve
from afresh.cli.session import Session
from afresh.cli.shell import argument, command, option, switch
from afresh.cli.sync_command import sync
from afresh.cli.watch_command import watch
from afresh.cli.worker_command import worker
from afresh.errors import UsageError
from afresh.ports import Access
from afresh.text.redact import mask_secrets

if TYPE_CHECKING:
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase
    from afresh.model.reports import RunReport

SECTION = "Keep fresh"
full_flag = switch("--full", text="Download every page again, changed or not.")
trust_flag = switch(
    "--trust", text="Believe every 200, also what looks like an error page, a wall or an emptied page."
)
redetect_flag = switch(
    "--redetect-language", "redetect", text="Download every page again and set its language anew."
)
move_flag = switch(
    "--follow-move", "follow_move", text="Go on where the start page leads, even if that is another site."
)
detach_flag = switch("--detach", text="Only queue the run, and leave the work to `afresh worker`.")
LABEL = ("label", "LABEL", "The source, as NAME or NAME@VERSION.")


@command(
    SECTION,
    "afresh crawl https://docs.python.org/3/",
    "afresh crawl https://react.dev/reference/ --name react --version 19",
    "afresh crawl https://example.org/docs/ --exclude '*/old/*' --max-pages 500",
    "afresh crawl https://www.example.gov/ --keywords budget,minutes,contact:0.5",
    "afresh crawl https://app.example.org/ --render always",
    "afresh crawl ./notes --ignore drafts/",
    "afresh crawl facebook/react --name react/repo --version 19",
    "afresh crawl links.txt",
)
@argument(
    "target",
    "TARGET",
    "What to keep fresh: an address, a folder or file, owner/repo, git+URL, a file of links.",
)
@option("--name", metavar="NAME", text="Name of the source (else made); a/b joins the library a.")
@option("--version", metavar="V", text="Version of what is documented, as in react@18.")
@option("--max-pages", metavar="N", type=int, text="Pages at most.")
@option("--max-depth", metavar="N", type=int, text="Links to follow from the start at most.")
@option(
    "--max-params",
    metavar="N",
    type=limit,
    text="Query parameters an address keeps, the rest is cut off; none: all.",
)
@option(
    "--max-components",
    metavar="N",
    type=limit,
    text="Leave out addresses with more path components; none: no limit.",
)
@option(
    "--max-per-pattern",
    metavar="N",
    type=limit,
    text="Pages that look made without end, per pattern; none: no limit.",
)
@option("--scope", metavar="SCOPE", text="subpages, hostname or domain: which links belong.")
@option(
    "--include", metavar="GLOB", multiple=True, text="Only matching addresses; may be repeated; '' clears."
)
@option("--exclude", metavar="GLOB", multiple=True, text="No matching addresses; may be repeated; '' clears.")
@option("--concurrency", metavar="N", type=int, text="Requests at a time per host.")
@option("--delay", "delay_seconds", metavar="SECONDS", type=float, text="Pause between requests to a host.")
@option(
    "--keywords",
    metavar="A,B:0.5",
    type=keywords,
    text="Score links by these keywords, with weights from 0 to 1; '' clears.",
)
@option(
    "--crawl-order",
    "order",
    metavar="ORDER",
    text="breadth, or score: read what the best links lead to first.",
)
@option("--render", metavar="HOW", text="Which pages are shown in a browser: auto, never or always.")
@click.option(
    "--robots/--no-robots",
    "respect_robots",
    default=None,
    help="Obey robots.txt, or do not (for sites of your own).",
)
@option(
    "--storage-body", "body", metavar="HOW", text="markdown, or none: only the words, for search; no text."
)
@option("--ignore", metavar="GLOB", multiple=True, text="Files to leave out, as in .gitignore; '' clears.")
@click.option("--hidden/--no-hidden", "hidden", default=None, help="Also read hidden files, or do not.")
@click.option(
    "--symlinks/--no-symlinks", "symlinks", default=None, help="Follow links inside a folder, or do not."
)
@option("--verify", metavar="HOW", text="stat or hash: what tells that a file changed.")
@switch("--again", text="Add the URL even if a source has it already.")
@switch("--keep", text="Keep the source even if its first crawl reads nothing.")
@full_flag
@trust_flag
@redetect_flag
@move_flag
@detach_flag
def crawl(
    session: Session,
    target: str,
    name: str | None,
    version: str | None,
    again: bool,
    keep: bool,
    full: bool,
    trust: bool,
    redetect: bool,
    follow_move: bool,
    detach: bool,
    **flags: object,
) -> int:
    """Add a source if it is new, and read it now.

    A source is a site, a folder, a file, a repository or a list of links. A first crawl reads every page that
    belongs to it. A later one asks what changed and processes only that. Rules given as flags are remembered
    for the source, until others are given.
    """
    check_label(name, version)
    own = given(flags)
    check_flags(session, own)
    rules, policy = split(own)
    _check_detached(detach, trust, redetect, follow_move=follow_move)

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "RunReport":
        if detach:
            return await kb.runs.queue_crawl(
                target,
                name=name,
                version=version,
                rules=rules,
                policy=policy,
                full=full,
                keep=keep,
                again=again,
            )
        return await kb.runs.crawl(
            target,
            name=name,
            version=version,
            rules=rules,
            policy=policy,
            full=full,
            trust=trust,
            redetect=redetect,
            follow_move=follow_move,
            keep=keep,
            again=again,
            listener=listener,
        )

    from afresh.cli.running import run

    return show_one(session, run(session, work), again=_again(target, name, version))


@command(
    SECTION,
    "afresh refresh",
    "afresh refresh react@19",
    "afresh refresh --due --quiet      # in a cron job",
    "afresh refresh --due --detach     # the same, where workers run",
)
@argument("labels", "[LABEL]...", "Sources, as NAME or NAME@VERSION; else all.", nargs=-1)
@switch("--due", text="Only pages whose time for another look has come.")
@option(
    "--budget",
    metavar="N",
    type=click.IntRange(1),
    text="With --due: pages of each source at most, longest due first.",
)
@full_flag
@trust_flag
@redetect_flag
@move_flag
@detach_flag
def refresh(
    session: Session,
    labels: tuple[str, ...],
    due: bool,
    budget: int | None,
    full: bool,
    trust: bool,
    redetect: bool,
    follow_move: bool,
    detach: bool,
) -> int:
    """Look again at what is known, and process only what changed."""
    if budget is not None and not due:
        raise UsageError("--budget limits what is due: write `afresh refresh --due --budget N`")
    _check_detached(detach, trust, redetect, budget, follow_move=follow_move)

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "list[RunReport]":
        if detach:
            return await kb.runs.queue_refresh(
                tuple(dict.fromkeys(labels)), due=due, full=full, listener=listener
            )
        return await kb.runs.refresh(
            tuple(dict.fromkeys(labels)),
            due=due,
            budget=budget,
            full=full,
            trust=trust,
            redetect=redetect,
            follow_move=follow_move,
            listener=listener,
        )

    from afresh.cli import report
    from afresh.cli.running import run

    reports = run(session, work, access=Access.CHANGE)
    if not reports:
        session.say(
            "Nothing is due." if due else "There is nothing to refresh yet: afresh crawl URL adds a source."
        )
    if not session.wrote_json(report.totals(reports)) and reports:
        session.show(report.draw_all(reports, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code(reports)


@command(SECTION, "afresh plan react@19", "afresh plan https://react.dev/learn")
@argument("target", "LABEL|TARGET", "A source, as NAME or NAME@VERSION, or what might become one.")
def plan(session: Session, target: str) -> None:
    """Tell what a refresh would look at and cost, or what would be read of a new source.

    Nothing is written. For a refresh nothing is fetched either; of a web site that is not kept yet the start
    page is, to tell which of its links belong.
    """
    from afresh.cli import previews

    view = session.ask(lambda kb: previews.plan_or_preview(kb, target))
    if not session.wrote_json(view):
        session.show(previews.told(view, session.now))


@command(SECTION, "afresh status      # shows the run that waits", "afresh confirm 7")
@argument("run", "RUN", "Number of the run that waits.", type=int)
def confirm(session: Session, run: int) -> int:
    """Let a run delete what the brake holds.

    A run that would delete an unusual share of a source deletes nothing and waits. If the pages are really
    gone, confirm it.
    """
    return show_one(session, session.ask(lambda kb: kb.runs.confirm(run), access=Access.CHANGE))


@command(SECTION, "afresh runs        # tells the numbers", "afresh cancel 7")
@argument("run", "RUN", "Number of the run to stop.", type=int)
def cancel(session: Session, run: int) -> None:
    """Stop a run, in whatever process; what it has read stays, and the next refresh goes on with it."""
    stopped = session.ask(lambda kb: kb.runs.cancel(run), access=Access.CHANGE)
    if not session.wrote_json(stopped):
        session.show(f"Run {run} is cancelled.")


def show_one(session: Session, done: "RunReport", again: str = "") -> int:
    """Prints the report of one run and tells its exit code."""
    from afresh.cli import report

    if not session.wrote_json(done):
        session.show(report.draw(done, again=again, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code([done])


def _check_detached(
    detach: bool, trust: bool, redetect: bool, budget: int | None = None, *, follow_move: bool
) -> None:
    """What a worker cannot know of a run is refused."""
    given = {"--trust": trust, "--redetect-language": redetect, "--budget": budget is not None}
    given["--follow-move"] = follow_move
    flag = next((name for name, is_given in given.items() if is_given), None)
    if detach and flag:
        raise UsageError(f"{flag} is for a run in this process: leave out --detach")


def _again(target: str, name: str | None, version: str | None) -> str:
    words = ["afresh", "crawl", mask_secrets(target)]
    words += ["--name", name] if name else []
    words += ["--version", version] if version else []
    return shlex.join(words)


COMMANDS = (crawl, refresh, schedule, init_kb, watch, serve, worker, plan, confirm, cancel, reindex, sync)
