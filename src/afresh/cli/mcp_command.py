"""The command that lets agents in."""

import sys

from afresh.cli.session import Session
from afresh.cli.shell import command, switch
from afresh.ports import Access


@command(
    "Find",
    "afresh mcp --read-only --store postgresql://db.internal/afresh",
    "claude mcp add afresh -- afresh mcp",
)
@switch("--read-only", "read_only", text="Offer only tools that read: no crawling, no removing.")
def mcp(session: Session, read_only: bool) -> None:
    """Serve agents over MCP on stdin and stdout, until the client hangs up.

    For clients such as Claude, Cursor and VS Code, which start this command themselves: docs/mcp.md shows
    their settings. Runs that an agent starts are worked on while the session lives; what is left of them
    goes on with the next session, or with `afresh worker`.
    """
    from afresh.server.mcp.stdio import take_wire

    if sys.stdin.isatty():
        session.say("afresh speaks MCP here, line by line; clients start it themselves (docs/mcp.md)")
    config = session.config
    wire = take_wire()

    async def work() -> None:
        from afresh.app import build
        from afresh.server.mcp.server import make_server
        from afresh.server.mcp.stdio import serve

        kb = await build(config, access=Access.READ if read_only else Access.CREATE)
        try:
            await serve(make_server(kb, read_only=read_only), wire)
        finally:
            await kb.close()

    import asyncio

    with session.logged():
        asyncio.run(work())
