"""Commands that serve: serve, worker, mcp."""

import sys
from typing import TYPE_CHECKING

import click

from afresh.cli.schedule_commands import calmly, keep_working
from afresh.cli.session import Session
from afresh.cli.shell import command, option, switch
from afresh.ports import StoreAccess

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from afresh.cli.schedule_commands import Tell
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase


@command(
    "Keep fresh",
    "afresh serve                        # then open http://127.0.0.1:8000",
    "afresh serve --port 9000 --read-only",
    "afresh serve --store postgresql://db.internal/afresh --workers-here 0",
)
@option("--host", "ADDRESS", "Where to listen (127.0.0.1: only this machine).")
@option("--port", "N", "The port (8000); 0: any that is free.", type=click.IntRange(0, 65_535))
@switch("--read-only", "Answer, and change nothing: no runs, no new sources.")
@option(
    "--workers-here", "0|1", "0: leave runs to `afresh worker` (1).", type=click.IntRange(0, 1), default=1
)
@switch("--no-schedule", "Start nothing by itself: no scheduled runs, no syncs, no update of the index.")
def serve(
    session: Session,
    host: str | None,
    port: int | None,
    read_only: bool,
    workers_here: int,
    no_schedule: bool,
) -> None:
    """Serve the web interface and the REST API, until Ctrl-C.

    The pages are at /, the API is described at /docs. Runs are worked on by this process: those that are
    asked for, and those whose time has come. External stores are synced after each run, and the index of
    the section kb is kept up to date. Told to stop, it finishes answers under way; a run that is open goes
    on at the next start.
    """
    import asyncio

    work = {"read_only": read_only, "works": bool(workers_here), "schedules": not no_schedule}
    with session.logged():
        asyncio.run(_serve(session, host, port, **work))


async def _serve(
    session: Session, host: str | None, port: int | None, *, read_only: bool, works: bool, schedules: bool
) -> None:
    from afresh.app import build
    from afresh.cli.progress import StopSignals, signals, when_up
    from afresh.server.app import make_app
    from afresh.server.uvicorn_server import Server
    from afresh.services.webhooks import check_notify

    check_notify(session.config)
    settings = session.config.server
    access = StoreAccess.READ if read_only else StoreAccess.CREATE
    kb = await when_up(lambda: build(session.config, access=access))
    try:
        app = make_app(kb, session.config, read_only=read_only, works=works, schedules=schedules)
        server = Server(app, host or settings.host, settings.port if port is None else port)
        with calmly(session) as watch, signals(StopSignals(server.leave, watch)):
            session.say(f"afresh serves at {server.url} (API: {server.url}/docs); Ctrl-C ends it")
            for warning in exposure(server.host, has_tokens=await kb.tokens.exist()):
                session.say(warning, "yellow")
            await server.work()
    finally:
        await kb.close()


def exposure(host: str, *, has_tokens: bool) -> list[str]:
    """Return warnings if other machines can reach the server, and what to do."""
    from afresh.server.request_checks import is_loopback

    if is_loopback(host):
        return []
    warnings = [
        f"Warning: {host} can be reached from other machines, and nothing is encrypted: put a reverse proxy "
        "with TLS in front and let it reach 127.0.0.1, or others can read tokens and answers on their way."
    ]
    if not has_tokens:
        warnings.append(
            "Warning: there is no token, so other machines are refused, except what a proxy on this machine "
            "passes on without saying so: run `afresh token create --scope read`."
        )
    return warnings


@command(
    "Keep fresh",
    "afresh crawl https://docs.python.org/3/ --detach && afresh worker --once",
    "afresh worker --store postgresql://db.internal/afresh",
    "afresh worker --sources react,vue@3 --concurrency 8",
    "afresh worker --json | jq .changed",
)
@option("--concurrency", "N", "Sources looked at side by side (4).", type=click.IntRange(1, 64), default=4)
@option("--sources", "A,B", "Only these, as NAME or NAME@VERSION.")
@switch("--once", "End when there is nothing to do; 1 if a run failed.")
def worker(session: Session, concurrency: int, sources: str | None, once: bool) -> int:
    """Work on open runs of the store, until Ctrl-C.

    Takes up runs that were started with --detach or whose process died, and lends a hand in those of other
    workers, here or on other machines. Told to stop, it finishes or gives back what is under way within
    seconds; others go on. One line tells of each run that ends; with --json one object per line.
    """
    labels = [each.strip() for each in (sources or "").split(",") if each.strip()]

    def work(kb: "KnowledgeBase", listener: "Listener", tell: "Tell") -> "Awaitable[bool]":
        return kb.runs.work(labels, at_once=concurrency, once=once, tell=tell, listener=listener)

    return keep_working(session, work, once=once)


@command(
    "Find",
    "afresh mcp --read-only --store postgresql://db.internal/afresh",
    "claude mcp add afresh -- afresh mcp",
)
@switch("--read-only read_only", "Offer only tools that read: no crawling, no removing.")
def mcp(session: Session, read_only: bool) -> None:
    """Serve agents over MCP on stdin and stdout, until the client disconnects.

    For clients such as Claude, Cursor and VS Code, which start this command themselves: docs/howto/mcp.md shows
    their settings. Runs that an agent starts are worked on while the session lives; what is left of them
    goes on with the next session, or with `afresh worker`.
    """
    from afresh.server.mcp.stdio import take_wire

    if sys.stdin.isatty():
        session.say("afresh speaks MCP here, line by line; clients start it themselves (docs/howto/mcp.md)")
    config = session.config
    wire = take_wire()

    async def work() -> None:
        from afresh.app import build
        from afresh.server.mcp.server import make_server
        from afresh.server.mcp.stdio import serve

        kb = await build(config, access=StoreAccess.READ if read_only else StoreAccess.CREATE)
        try:
            await serve(make_server(kb, read_only=read_only), wire)
        finally:
            await kb.close()

    import asyncio

    with session.logged():
        asyncio.run(work())
