"""Commands for runs: crawl, refresh, plan, confirm, cancel."""

import re
import shlex
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from afresh.cli.session import Session
from afresh.cli.shell import argument, command, labels, option, switch
from afresh.config.layers import split_settings
from afresh.errors import ConfigError, UsageError
from afresh.links.score import KeywordError, parse_keywords
from afresh.ports import StoreAccess
from afresh.text.redact import mask_secrets

if TYPE_CHECKING:
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase
    from afresh.model.reports import RunReport


# Flags with other names than the rules and policies of a source.
FLAGS = {
    "delay_seconds": "--delay",
    "order": "--crawl-order",
    "respect_robots": "--robots",
    "body": "--storage-body",
    "schedule": "--set",
}


class NoLimit(Enum):
    """The value `none` of a limit; None means that the flag was not given."""

    TYPED = "none"


def limit(typed: str) -> int | NoLimit:
    if typed.strip().lower() in {"none", "null"}:
        return NoLimit.TYPED
    try:
        return int(typed)
    except ValueError:
        raise click.BadParameter(f"{typed!r} is not a valid integer; none lifts the limit") from None


def keywords(typed: str) -> dict[str, float]:
    try:
        return parse_keywords(typed)
    except KeywordError as wrong:
        raise click.BadParameter(str(wrong)) from None


def given(flags: Mapping[str, object]) -> dict[str, object]:
    """Return only the flags that were typed; an empty pattern clears the list, `none` removes the limit."""
    found: dict[str, object] = {}
    for key, value in flags.items():
        if isinstance(value, tuple) and value:
            found[key] = [pattern for pattern in value if pattern.strip()]
        elif value is not None and value != ():
            found[key] = None if value is NoLimit.TYPED else value
    return found


def check_flags(session: Session, own: Mapping[str, object]) -> None:
    """Refuse an invalid flag by its typed name before anything is opened."""
    for key, value in own.items():
        try:
            session.config.with_overrides({key: value})
        except ConfigError as wrong:
            flag = FLAGS.get(key, f"--{key.replace('_', '-')}")
            raise UsageError(str(wrong).replace(f"{key}:", f"{flag}:", 1)) from None


def check_label(name: str | None, version: str | None) -> None:
    """Refuse a name or version that cannot be typed as NAME@VERSION."""
    if name is not None and not name.strip():
        raise UsageError("--name: expected a name such as react, got nothing; leave it out to have one made")
    if version is not None and not version:
        raise UsageError(
            "--version: expected a version such as 19, got nothing; leave it out if there is none"
        )
    if version is not None and (re.search(r"[\s@]", version) or not version.isprintable()):
        raise UsageError(f"--version: expected a version without blanks and @, such as 19, got {version!r}")


SECTION = "Keep fresh"
full_flag = switch("--full", "Download every page again, changed or not.")
trust_flag = switch(
    "--trust", "Believe every 200, also what looks like an error page, a wall or an emptied page."
)
redetect_flag = switch("--redetect-language redetect", "Download every page again and set its language anew.")
move_flag = switch(
    "--follow-move follow_move", "Go on where the start page leads, even if that is another site."
)
detach_flag = switch("--detach", "Only queue the run, and leave the work to `afresh worker`.")
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
@option("--name", "NAME", "Name of the source (else made); a/b joins the library a.")
@option("--version", "V", "Version of what is documented, as in react@18.")
@option("--max-pages", "N", "Pages at most.", type=int)
@option("--max-depth", "N", "Links to follow from the start at most.", type=int)
@option("--max-params", "N", "Query parameters an address keeps, the rest is cut off; none: all.", type=limit)
@option("--max-components", "N", "Leave out addresses with more path components; none: no limit.", type=limit)
@option(
    "--max-per-pattern", "N", "Pages that look made without end, per pattern; none: no limit.", type=limit
)
@option("--scope", "SCOPE", "subpages, hostname or domain: which links belong.")
@option("--include", "GLOB", "Only matching addresses; may be repeated; '' clears.", multiple=True)
@option("--exclude", "GLOB", "No matching addresses; may be repeated; '' clears.", multiple=True)
@option("--concurrency", "N", "Requests at a time per host.", type=int)
@option("--delay delay_seconds", "SECONDS", "Pause between requests to a host.", type=float)
@option(
    "--keywords",
    "A,B:0.5",
    "Score links by these keywords, with weights from 0 to 1; '' clears.",
    type=keywords,
)
@option("--crawl-order order", "ORDER", "breadth, or score: read what the best links lead to first.")
@option("--render", "HOW", "Which pages are shown in a browser: auto, never or always.")
@switch(
    "--robots/--no-robots respect_robots", "Obey robots.txt, or do not (for sites of your own).", default=None
)
@option("--storage-body body", "HOW", "markdown, or none: only the words, for search; no text.")
@option("--ignore", "GLOB", "Files to leave out, as in .gitignore; '' clears.", multiple=True)
@switch("--hidden/--no-hidden", "Also read hidden files, or do not.", default=None)
@switch("--symlinks/--no-symlinks", "Follow links inside a folder, or do not.", default=None)
@option("--verify", "HOW", "stat or hash: what tells that a file changed.")
@switch("--again", "Add the URL even if a source has it already.")
@switch("--keep", "Keep the source even if its first crawl reads nothing.")
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
    """Add a source if it is new, and crawl it now.

    A source is a site, a folder, a file, a repository or a list of links. A first crawl reads every page that
    belongs to it. A later one asks what changed and processes only that. Rules given as flags are remembered
    for the source, until others are given.
    """
    check_label(name, version)
    own = given(flags)
    check_flags(session, own)
    here: dict[str, Any] = {"trust": trust, "redetect": redetect, "follow_move": follow_move}
    _check_detached(detach, here)
    rules, policy = split_settings(own)
    wanted: dict[str, Any] = {"name": name, "version": version, "rules": rules, "policy": policy}
    wanted |= {"full": full, "keep": keep, "again": again}

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "RunReport":
        if detach:
            return await kb.runs.queue_crawl(target, **wanted)
        return await kb.runs.crawl(target, **wanted, **here, listener=listener)

    from afresh.cli.progress import run

    return show_one(session, run(session, work), again=_again(target, name, version))


@command(
    SECTION,
    "afresh refresh",
    "afresh refresh react@19",
    "afresh refresh --due --quiet      # in a cron job",
    "afresh refresh --due --detach     # the same, where workers run",
)
@labels()
@switch("--due", "Only pages whose time for another look has come.")
@option(
    "--budget", "N", "With --due: pages of each source at most, longest due first.", type=click.IntRange(1)
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
    """Check known pages again, and process only what changed."""
    if budget is not None and not due:
        raise UsageError("--budget limits what is due: write `afresh refresh --due --budget N`")
    here: dict[str, Any] = {"trust": trust, "redetect": redetect, "budget": budget}
    here["follow_move"] = follow_move
    _check_detached(detach, here)

    async def work(kb: "KnowledgeBase", listener: "Listener") -> "list[RunReport]":
        if detach:
            return await kb.runs.queue_refresh(labels, due=due, full=full, listener=listener)
        return await kb.runs.refresh(labels, due=due, full=full, **here, listener=listener)

    from afresh.cli import report
    from afresh.cli.progress import run

    reports = run(session, work, access=StoreAccess.CHANGE)
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
    """Show what a refresh would check and cost, or what would be read of a new source.

    Nothing is written. For a refresh nothing is fetched either; of a web site that is not kept yet the start
    page is, to tell which of its links belong.
    """
    from afresh.cli import details
    from afresh.model.overview import Preview

    view = session.ask(lambda kb: details.plan_or_preview(kb, target))
    if not session.wrote_json(view):
        drawn = details.preview(view) if isinstance(view, Preview) else details.plan(view, session.now)
        session.show(drawn)


@command(SECTION, "afresh status      # shows the run that waits", "afresh confirm 7")
@argument("run", "RUN", "Number of the run that waits.", type=int)
def confirm(session: Session, run: int) -> int:
    """Confirm the deletions that a run is waiting for.

    A run that would delete an unusual share of a source deletes nothing and waits. If the pages are really
    gone, confirm it.
    """
    return show_one(session, session.ask(lambda kb: kb.runs.confirm(run), access=StoreAccess.CHANGE))


@command(SECTION, "afresh runs        # tells the numbers", "afresh cancel 7")
@argument("run", "RUN", "Number of the run to stop.", type=int)
def cancel(session: Session, run: int) -> None:
    """Stop a run in any process; what it has read is kept, and the next refresh continues it."""
    stopped = session.ask(lambda kb: kb.runs.cancel(run), access=StoreAccess.CHANGE)
    if not session.wrote_json(stopped):
        session.show(f"Run {run} is cancelled.")


def show_one(session: Session, done: "RunReport", again: str = "") -> int:
    from afresh.cli import report

    if not session.wrote_json(done):
        session.show(report.draw(done, again=again, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code([done])


def _check_detached(detach: bool, here: Mapping[str, object]) -> None:
    """Refuse options that a worker cannot know."""
    name = next((name for name, value in here.items() if value), None)
    if detach and name:
        flag = "--redetect-language" if name == "redetect" else f"--{name.replace('_', '-')}"
        raise UsageError(f"{flag} is for a run in this process: leave out --detach")


def _again(target: str, name: str | None, version: str | None) -> str:
    words = ["afresh", "crawl", mask_secrets(target)]
    words += ["--name", name] if name else []
    words += ["--version", version] if version else []
    return shlex.join(words)
