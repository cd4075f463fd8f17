"""Commands that serve: serve, worker, mcp."""

import sys
from typing import TYPE_CHECKING

import click

from afresh.cli.schedule_commands import keep_working, show_long_runs
from afresh.cli.session import Session
from afresh.cli.shell import command, option, switch
from afresh.ports import StoreAccess

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from afresh.cli.schedule_commands import ReportListener
    from afresh.events import Listener
    from afresh.kb import KnowledgeBase


@command(
    "Keep fresh",
    "afresh serve                        # then open http://127.0.0.1:8000",
    "afresh serve --port 9000 --read-only",
    "afresh serve --store postgresql://db.internal/afresh --workers-here 0",
)
@option("--host", "ADDRESS", "Address to listen on (default: 127.0.0.1, only this machine).")
@option("--port", "N", "Port (default: 8000); 0: any free port.", type=click.IntRange(0, 65_535))
@switch("--read-only", "Allow only reading: no runs, no new sources, no changes.")
@option(
    "--workers-here",
    "0|1",
    "1 (default): work on runs here; 0: leave them to `afresh worker`.",
    type=click.IntRange(0, 1),
    default=1,
)
@switch("--no-schedule", "Start nothing automatically: no scheduled runs, no syncs, no update of index.txt.")
def serve(
    session: Session, host: str | None, port: int | None, read_only: bool, workers_here: int, no_schedule: bool
) -> None:
    """Serve the web interface and the REST API, until Ctrl-C.

    The web interface is at /, the API documentation at /docs. The process also works on requested
    and scheduled runs. It syncs external stores after each run and keeps the index.txt of the settings `kb` up to
    date. Ctrl-C finishes open requests; the next start continues an active run.
    """
    from afresh.cli.progress import StopSignals, handle_signals, open_when_up
    from afresh.services.webhooks import check_notify

    config = session.config
    settings = config.server

    async def work(kb: "KnowledgeBase") -> None:
        from afresh.server.app import make_app
        from afresh.server.uvicorn_server import Server

        app = make_app(kb, config, read_only=read_only, works=bool(workers_here), schedules=not no_schedule)
        server = Server(app, host or settings.host, settings.port if port is None else port)
        with show_long_runs(session) as watch, handle_signals(StopSignals(server.leave, watch)):
            session.say(f"Serving at {server.url} (API: {server.url}/docs). Press Ctrl-C to stop.")
            for warning in exposure(server.host, has_tokens=await kb.tokens.exist()):
                session.say(warning, "yellow")
            await server.work()

    check_notify(config)
    session.ask(work, access=StoreAccess.READ if read_only else StoreAccess.CREATE, open_when_up=open_when_up)


def exposure(host: str, *, has_tokens: bool) -> list[str]:
    from afresh.server.request_checks import is_loopback

    if is_loopback(host):
        return []
    warnings = [
        f"Warning: other machines can reach {host}, and connections are not encrypted, so tokens and answers can be "
        "intercepted. Listen on 127.0.0.1 behind a reverse proxy with TLS."
    ]
    if not has_tokens:
        warnings.append(
            "Warning: there are no tokens, so requests from other machines are refused, except those forwarded by a "
            "proxy on this machine. Create one with `afresh token create --scope read`."
        )
    return warnings


@command(
    "Keep fresh",
    "afresh crawl https://docs.python.org/3/ --detach && afresh worker --once",
    "afresh worker --store postgresql://db.internal/afresh",
    "afresh worker --sources react,vue@3 --concurrency 8",
    "afresh worker --json | jq .changed",
)
@option("--concurrency", "N", "Sources processed concurrently (default: 4).", type=click.IntRange(1, 64), default=4)
@option("--sources", "A,B", "Only these sources, as NAME or NAME@VERSION.")
@switch("--once", "Exit when there is nothing to do; exit code 1 if a run failed.")
def worker(session: Session, concurrency: int, sources: str | None, once: bool) -> int:
    """Work on queued and interrupted runs of the store, until Ctrl-C.

    Takes runs that were queued with --detach or whose process died, and helps other workers with theirs, also on
    other machines. Ctrl-C finishes or releases claimed pages within seconds; other workers continue with them.
    Prints one line per finished run; with --json one object per line.
    """
    labels = [each.strip() for each in (sources or "").split(",") if each.strip()]

    def work(kb: "KnowledgeBase", listener: "Listener", on_report: "ReportListener") -> "Awaitable[bool]":
        return kb.runs.work(labels, at_once=concurrency, once=once, on_report=on_report, listener=listener)

    return keep_working(session, work, once=once)


@command(
    "Find", "afresh mcp --read-only --store postgresql://db.internal/afresh", "claude mcp add afresh -- afresh mcp"
)
@switch("--read-only read_only", "Offer only tools that read: no crawling, no removing.")
def mcp(session: Session, read_only: bool) -> None:
    """Serve agents over MCP on stdin and stdout, until the client disconnects.

    For clients such as Claude, Cursor and VS Code, which start this command themselves: docs/howto/mcp.md shows
    their settings. Runs that an agent starts continue while the session is open, then in the next session or
    with `afresh worker`.
    """
    from afresh.server.mcp.stdio import take_wire

    if sys.stdin.isatty():
        session.say("Waiting for MCP messages on stdin. MCP clients start this command themselves (docs/howto/mcp.md).")
    access = StoreAccess.READ if read_only else StoreAccess.CREATE
    config, wire = session.config, take_wire()

    async def work(kb: "KnowledgeBase") -> None:
        from afresh.server.mcp.server import make_server
        from afresh.server.mcp.stdio import serve

        await serve(make_server(kb, read_only=read_only), *wire)

    session.ask(work, config, access=access)
