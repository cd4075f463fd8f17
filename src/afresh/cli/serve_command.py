"""The command that serves: web pages and REST, with a worker of its own."""

import click

from afresh.cli.session import Session
from afresh.cli.shell import command, option, switch
from afresh.cli.watch_command import calmly
from afresh.ports import Access


@command(
    "Keep fresh",
    "afresh serve                        # then open http://127.0.0.1:8000",
    "afresh serve --port 9000 --read-only",
    "afresh serve --store postgresql://db.internal/afresh --workers-here 0",
)
@option("--host", metavar="ADDRESS", text="Where to listen (127.0.0.1: only this machine).")
@option("--port", metavar="N", type=click.IntRange(0, 65_535), text="The port (8000); 0: any that is free.")
@switch("--read-only", text="Answer, and change nothing: no runs, no new sources.")
@option(
    "--workers-here",
    metavar="0|1",
    type=click.IntRange(0, 1),
    default=1,
    text="0: leave runs to `afresh worker` (1).",
)
@switch("--no-schedule", text="Start nothing by itself: no scheduled runs, no syncs, no update of the index.")
def serve(
    session: Session,
    host: str | None,
    port: int | None,
    read_only: bool,
    workers_here: int,
    no_schedule: bool,
) -> None:
    """Serve the knowledge base as web pages and a REST API, until Ctrl-C.

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
    from afresh.cli.running import Brake, signals, when_up
    from afresh.server.app import make_app
    from afresh.server.serving import Server
    from afresh.services.sink_registry import check_notify

    check_notify(session.config)
    settings = session.config.server
    access = Access.READ if read_only else Access.CREATE
    kb = await when_up(lambda: build(session.config, access=access))
    try:
        app = make_app(kb, session.config, read_only=read_only, works=works, schedules=schedules)
        server = Server(app, host or settings.host, settings.port if port is None else port)
        with calmly(session) as watch, signals(Brake(server.leave, watch)):
            session.say(f"afresh serves at {server.url} (API: {server.url}/docs); Ctrl-C ends it")
            for warning in exposure(server.host, has_tokens=await kb.tokens.exist()):
                session.say(warning, "yellow")
            await server.work()
    finally:
        await kb.close()


def exposure(host: str, *, has_tokens: bool) -> list[str]:
    """What to know where other machines reach the server, and what to do about it."""
    from afresh.server.host_checks import is_loopback

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
