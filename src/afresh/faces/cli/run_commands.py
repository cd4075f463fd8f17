"""The commands that start runs or speak about them: crawl, refresh, plan, confirm."""

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from afresh.core.errors import ConfigError, UsageError
from afresh.faces.cli.session import Session
from afresh.faces.cli.shell import argument, command, option, switch

if TYPE_CHECKING:
    from afresh.core.events import Listener
    from afresh.core.views import RunReport
    from afresh.faces.cli.opening import Knowledge

SECTION = "Keep fresh"
# The flags of `crawl` by the names that a source's rules and policy have for them.
FLAGS = {
    "scope": "--scope",
    "include": "--include",
    "exclude": "--exclude",
    "max_depth": "--max-depth",
    "max_pages": "--max-pages",
    "max_params": "--max-params",
    "max_components": "--max-components",
    "concurrency": "--concurrency",
    "delay_seconds": "--delay",
    "render": "--render",
    "respect_robots": "--no-robots",
    "body": "--storage-body",
}
RULES = ("scope", "include", "exclude", "max_depth", "max_pages", "max_params", "max_components")

full_flag = switch("--full", text="Download every page again, changed or not.")
LABEL = ("label", "LABEL", "The source, as NAME or NAME@VERSION.")


@command(
    SECTION,
    "afresh crawl https://docs.python.org/3/",
    "afresh crawl https://react.dev/reference/ --name react --version 19",
    "afresh crawl https://example.org/docs/ --exclude '*/old/*' --max-pages 500",
)
@argument("target", "TARGET", "Address of the site to keep fresh.")
@option("--name", metavar="NAME", text="Name of the source (else made from the address).")
@option("--version", metavar="V", text="Version of what is documented, as in react@18.")
@option("--max-pages", metavar="N", type=int, text="Pages at most.")
@option("--max-depth", metavar="N", type=int, text="Links to follow from the start at most.")
@option("--max-params", metavar="N", type=int, text="Leave out addresses with more query parameters.")
@option("--max-components", metavar="N", type=int, text="Leave out addresses with more path components.")
@option("--scope", metavar="SCOPE", text="subpages, hostname or domain: which links belong.")
@option("--include", metavar="GLOB", multiple=True, text="Only matching addresses; may be repeated.")
@option("--exclude", metavar="GLOB", multiple=True, text="No matching addresses; may be repeated.")
@option("--concurrency", metavar="N", type=int, text="Requests at a time per host.")
@option("--delay", "delay_seconds", metavar="SECONDS", type=float, text="Pause between requests to a host.")
@option("--render", metavar="HOW", text="auto or never; today both mean plain HTTP.")
@switch("--no-robots", text="Do not obey robots.txt (for sites of your own).")
@option("--storage-body", "body", metavar="HOW", text="markdown or none: whether page texts are kept.")
@full_flag
def crawl(
    session: Session,
    target: str,
    name: str | None,
    version: str | None,
    full: bool,
    no_robots: bool,
    **flags: object,
) -> int:
    """Add a site if it is new, and read it now.

    A first crawl reads every page that belongs to the site. A later one asks each page whether it changed and
    processes only what did. Rules given as flags are remembered for the source.
    """
    given = flags | {"respect_robots": False if no_robots else None}
    own = {key: value for key, value in given.items() if value is not None and value != ()}
    check_flags(session, own)
    rules = {key: value for key, value in own.items() if key in RULES}
    policy = {key: value for key, value in own.items() if key not in RULES}

    async def work(kb: "Knowledge", listener: "Listener") -> "RunReport":
        return await kb.crawl(
            target, name=name, version=version, rules=rules, policy=policy, full=full, listener=listener
        )

    from afresh.faces.cli.running import run

    return show_one(session, run(session, work), again=_again(target, name, version))


@command(
    SECTION,
    "afresh refresh",
    "afresh refresh react@19",
    "afresh refresh --due --quiet      # in a cron job",
)
@argument("labels", "[LABEL]...", "Sources, as NAME or NAME@VERSION; else all.", nargs=-1)
@switch("--due", text="Only pages whose time for another look has come.")
@full_flag
def refresh(session: Session, labels: tuple[str, ...], due: bool, full: bool) -> int:
    """Look again at what is known, and process only what changed."""

    async def work(kb: "Knowledge", listener: "Listener") -> "list[RunReport]":
        return await kb.refresh(labels, due=due, full=full, listener=listener)

    from afresh.faces.cli import report
    from afresh.faces.cli.running import run

    reports = run(session, work)
    if not reports:
        session.say(
            "Nothing is due." if due else "There is nothing to refresh yet: afresh crawl URL adds a source."
        )
    if not session.wrote_json(report.totals(reports)) and reports:
        session.show(report.draw_all(reports, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code(reports)


@command(SECTION, "afresh plan react@19", "afresh plan react@19 --json")
@argument(*LABEL)
def plan(session: Session, label: str) -> None:
    """Tell what a refresh would look at and cost; nothing is fetched or written."""
    view = session.ask(lambda kb: kb.plan(label))
    if session.wrote_json(view):
        return
    from afresh.faces.cli import evidence

    session.show(evidence.plan(view))


@command(SECTION, "afresh status      # shows the run that waits", "afresh confirm 7")
@argument("run", "RUN", "Number of the run that waits.", type=int)
def confirm(session: Session, run: int) -> int:
    """Let a run delete what the brake holds.

    A run that would delete an unusual share of a source deletes nothing and waits. If the pages are really
    gone, confirm it.
    """
    return show_one(session, session.ask(lambda kb: kb.confirm(run)))


def check_flags(session: Session, own: Mapping[str, object]) -> None:
    """Refuses a wrong flag by the name that was typed, before anything is opened."""
    for key, value in own.items():
        try:
            session.config.with_overrides({key: value})
        except ConfigError as wrong:
            raise UsageError(str(wrong).replace(f"{key}:", f"{FLAGS[key]}:", 1)) from None


def show_one(session: Session, done: "RunReport", again: str = "") -> int:
    """Prints the report of one run and tells its exit code."""
    from afresh.faces.cli import report

    if not session.wrote_json(done):
        session.show(report.draw(done, again=again, verbose=session.verbose, quiet=session.quiet))
    return report.exit_code([done])


def _again(target: str, name: str | None, version: str | None) -> str:
    words = ["afresh", "crawl", target]
    words += ["--name", name] if name else []
    words += ["--version", version] if version else []
    return shlex.join(words)


COMMANDS = (crawl, refresh, plan, confirm)
