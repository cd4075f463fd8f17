"""The program: every command, in the order its help shows them."""

import click

from afresh import __version__
from afresh.cli import (
    edit_commands,
    maintenance_commands,
    read_commands,
    run_commands,
    store_commands,
    token_commands,
    webhook_command,
)
from afresh.cli.session import Session
from afresh.cli.shell import Group
from afresh.errors import UsageError

START = (
    "afresh crawl https://docs.example.org/   add a site and read it",
    "afresh refresh                           look again, process only what changed",
    "afresh search retry with back-off        find passages",
    "afresh demo                              see all of it in a few seconds",
)


@click.group(
    "afresh",
    cls=Group,
    subcommand_metavar="COMMAND [ARGS]...",
    examples=START,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, help="Print the version and end.")
@click.pass_context
def program(ctx: click.Context, version: bool) -> None:
    """Keeps a searchable knowledge base of documentation fresh, and pays only for what changed.

    Exit codes: 0 done, 1 the work failed or is partly done, 2 wrong use or settings,
    3 a run waits for a confirmation.
    """
    session: Session = ctx.obj
    if version:
        if not session.wrote_json({"version": __version__}):
            click.echo(f"afresh {__version__}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        raise UsageError("name a command: afresh --help lists them")


for each in (
    *run_commands.COMMANDS,
    *read_commands.COMMANDS,
    *edit_commands.COMMANDS,
    *maintenance_commands.COMMANDS,
    *store_commands.COMMANDS,
    *token_commands.COMMANDS,
    *webhook_command.COMMANDS,
):
    program.add_command(each)
