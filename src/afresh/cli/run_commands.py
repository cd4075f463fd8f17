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
from afresh.errors import ConfigError, StoreMissing, UsageError
from afresh.links.score import KeywordError, parse_keywords
from afresh.ports import StoreAccess
from afresh.text.redact import mask_secrets

if TYPE_CHECKING:
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
    """The typed value `none`, which removes a limit; None stands for a limit that was not given."""

    TYPED = "none"


def limit(typed: str) -> int | NoLimit:
    if typed.strip().lower() in {"none", "null"}:
        return NoLimit.TYPED
    try:
        return int(typed)
    except ValueError:
        raise click.BadParameter(f"{typed!r} is not a whole number; `none` removes the limit") from None


def keywords(typed: str) -> dict[str, float]:
    try:
        return parse_keywords(typed)
    except KeywordError as wrong:
        raise click.BadParameter(str(wrong)) from None


def given(flags: Mapping[str, object]) -> dict[str, object]:
    """Return the flags that the user typed; an empty pattern clears a list of patterns, `none` removes a limit."""
    found: dict[str, object] = {}
    for key, value in flags.items():
        if isinstance(value, tuple) and value:
            found[key] = [pattern for pattern in value if pattern.strip()]
        elif value is not None and value != ():
            found[key] = None if value is NoLimit.TYPED else value
    return found


def check_flags(session: Session, values: Mapping[str, object]) -> None:
    """Raise UsageError for the first flag with an invalid value; `values` maps keys of settings to typed values."""
    for key, value in values.items():
        try:
            session.config.with_overrides({key: value})
        except ConfigError as wrong:
            flag = FLAGS.get(key, f"--{key.replace('_', '-')}")
            raise UsageError(str(wrong).replace(f"{key}:", f"{flag}:", 1)) from None


def check_label(name: str | None, version: str | None) -> None:
    """Refuse a name or version that cannot be typed as NAME@VERSION."""
    if name is not None and not name.strip():
        raise UsageError("--name: expected a name such as react, got nothing; leave it out to use a default name")
    if version is not None and not version:
        raise UsageError("--version: expected a version such as 19, got nothing; leave it out if there is none")
    if version is not None and (re.search(r"[\s@]", version) or not version.isprintable()):
        raise UsageError(f"--version: expected a version without spaces and without @, such as 19, got {version!r}")


SECTION = "Keep fresh"
full_flag = switch("--full", "Download every page again, even if it has not changed.")
trust_flag = switch("--trust", "Accept every 200 response, even if it looks like an error, login or empty page.")
redetect_flag = switch("--redetect-language redetect", "Download every page again and detect its language.")
move_flag = switch("--follow-move follow_move", "If the start page moved, continue there, even on another site.")
detach_flag = switch("--detach", "Queue the run and exit; `afresh worker` processes it.")


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
@argument("target", "TARGET", "What to crawl: a URL, a folder or file, owner/repo, git+URL, or a file with links.")
@option("--name", "NAME", "Name of the source (default: made from the target); a/b belongs to the library a.")
@option("--version", "V", "Version of the documented software, such as 18.")
@option("--max-pages", "N", "Maximum pages of the source.", type=int)
@option("--max-depth", "N", "Maximum links to follow from the start page.", type=int)
@option("--max-params", "N", "Maximum query parameters of a URL, further ones are removed; none: no limit.", type=limit)
@option("--max-components", "N", "Maximum path components of a URL; skip URLs with more; none: no limit.", type=limit)
@option("--max-per-pattern", "N", "Maximum pages whose URLs differ only in numbers or ids; none: no limit.", type=limit)
@option("--scope", "SCOPE", "Which links to follow: subpages, hostname or domain.")
@option("--include", "GLOB", "Crawl only URLs that match; may be repeated; '' removes stored patterns.", multiple=True)
@option("--exclude", "GLOB", "Skip URLs that match; may be repeated; '' removes stored patterns.", multiple=True)
@option("--concurrency", "N", "Concurrent requests per host.", type=int)
@option("--delay delay_seconds", "SECONDS", "Pause between requests to a host, in seconds.", type=float)
@option("--keywords", "A,B:0.5", "Score links by these keywords and weights (0 to 1); '' removes them.", type=keywords)
@option("--crawl-order order", "ORDER", "breadth: nearest pages first; score: pages with the best link scores first.")
@option("--render", "HOW", "Which pages to render in a browser: auto, never or always.")
@switch(
    "--robots/--no-robots respect_robots", "Obey robots.txt (default), or ignore it (for your own sites).", default=None
)
@option("--storage-body body", "HOW", "markdown: store the text of pages; none: store only the search index.")
@option(
    "--ignore", "GLOB", "Files to skip, as in .gitignore; may be repeated; '' removes stored patterns.", multiple=True
)
@switch("--hidden/--no-hidden", "Read hidden files, or skip them (default).", default=None)
@switch("--symlinks/--no-symlinks", "Follow symbolic links inside a folder, or skip them (default).", default=None)
@option("--verify", "HOW", "How to detect changed files: stat or hash.")
@switch("--again", "Add the URL even if another source has it.")
@switch("--keep", "Keep the source even if its first crawl fails.")
@full_flag
@trust_flag
@redetect_flag
@move_flag
@detach_flag
def crawl(session: Session, target: str, name: str | None, version: str | None, detach: bool, **flags: Any) -> int:
    """Add a source if it is new, and crawl it now.

    A source is a site, a folder, a file, a repository or a list of links. The first crawl reads every page of
    it. Later ones process only what changed. Rules given as flags are stored with the source.
    """
    check_label(name, version)
    how = {key: flags.pop(key) for key in ("full", "keep", "again", "trust", "redetect", "follow_move")}
    own = given(flags)
    check_flags(session, own)
    _check_detached(detach, how)
    rules, policy = split_settings(own)
    how |= {"name": name, "version": version, "rules": rules, "policy": policy}
    from afresh.cli.progress import run

    done = run(session, lambda kb, listener: kb.runs.crawl(target, **how, queue=detach, listener=listener))
    return show_one(session, done, again=_again(target, name, version))


@command(
    SECTION,
    "afresh refresh",
    "afresh refresh react@19",
    "afresh refresh --due --quiet      # in a cron job",
    "afresh refresh --due --detach     # queue it for workers",
)
@labels()
@switch("--due", "Only pages that are due for a check.")
@option("--budget", "N", "With --due: maximum pages per source, longest due first.", type=click.IntRange(1))
@full_flag
@trust_flag
@redetect_flag
@move_flag
@detach_flag
def refresh(session: Session, labels: tuple[str, ...], due: bool, detach: bool, **how: Any) -> int:
    """Check known pages again, and process only what changed."""
    if how["budget"] is not None and not due:
        raise UsageError("--budget needs --due: write `afresh refresh --due --budget N`")
    _check_detached(detach, how)
    from afresh.cli import report
    from afresh.cli.progress import run

    reports = run(
        session,
        lambda kb, listener: kb.runs.refresh(labels, due=due, **how, queue=detach, listener=listener),
        access=StoreAccess.CHANGE,
    )
    if not reports:
        session.say("Nothing is due." if due else "No sources yet. Add one with `afresh crawl URL`.")
    if not session.wrote_json(report.totals(reports)) and reports:
        session.show(report.draw_all(reports, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code(reports)


@command(SECTION, "afresh plan react@19", "afresh plan https://react.dev/learn")
@argument("target", "LABEL|TARGET", "A source, as NAME or NAME@VERSION, or a target for `afresh crawl`.")
def plan(session: Session, target: str) -> None:
    """Show what a refresh would check and cost, or what a crawl of a new source would read.

    Nothing is written. Nothing is fetched either, except the start page of a new web site, to list its links.
    """
    from afresh.cli.details import plan_or_preview
    from afresh.model.overview import Preview

    try:
        view = session.ask(lambda kb: plan_or_preview(kb, target))
    except StoreMissing:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            empty = session.after("store", f"sqlite:///{folder}/afresh.db")
            view = empty.ask(lambda kb: plan_or_preview(kb, target), access=StoreAccess.CREATE)
    session.answer(view, "details.preview" if isinstance(view, Preview) else "details.plan", session.now)


@command(SECTION, "afresh status      # shows runs that need confirmation", "afresh confirm 7")
@argument("run", "RUN", "Number of the run.", type=int)
def confirm(session: Session, run: int) -> int:
    """Confirm the deletions that a run is waiting for.

    A run that would delete an unusually large part of a source deletes nothing and waits. If the pages are
    really gone, confirm it.
    """
    return show_one(session, session.ask(lambda kb: kb.runs.confirm(run), access=StoreAccess.CHANGE))


@command(SECTION, "afresh runs        # lists runs with their numbers", "afresh cancel 7")
@argument("run", "RUN", "Number of the run to stop.", type=int)
def cancel(session: Session, run: int) -> None:
    """Stop a run, even if another process works on it. Its results are kept; the next refresh continues it."""
    session.inform(session.ask(lambda kb: kb.runs.cancel(run), access=StoreAccess.CHANGE), f"Cancelled run {run}.")


def show_one(session: Session, done: "RunReport", again: str = "") -> int:
    from afresh.cli import report

    if not session.wrote_json(done):
        session.show(report.draw(done, again=again, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code([done])


def _check_detached(detach: bool, how: Mapping[str, object]) -> None:
    name = next((name for name in ("trust", "redetect", "budget", "follow_move") if how.get(name)), None)
    if detach and name:
        flag = "--redetect-language" if name == "redetect" else f"--{name.replace('_', '-')}"
        raise UsageError(f"{flag} does not work with --detach: leave one of them out")


def _again(target: str, name: str | None, version: str | None) -> str:
    words = ["afresh", "crawl", mask_secrets(target)]
    words += ["--name", name] if name else []
    words += ["--version", version] if version else []
    return shlex.join(words)
