"""The program with all commands, in the order of its help, and its exit codes."""

import errno
import logging
import os
import sys

import click

from afresh import __version__
from afresh.cli.access_commands import token, webhooks
from afresh.cli.edit_commands import change, link, page
from afresh.cli.maintenance_commands import config, copy, demo, doctor, migrate, prune, remove
from afresh.cli.read_commands import (
    attempts,
    changes,
    find_version,
    history,
    links,
    open_page,
    pages,
    restore,
    runs,
    show,
    sources,
    status,
    why,
)
from afresh.cli.run_commands import cancel, confirm, crawl, plan, refresh
from afresh.cli.schedule_commands import schedule, watch
from afresh.cli.search_commands import search
from afresh.cli.serve_commands import mcp, serve, worker
from afresh.cli.session import Session, give_up, is_broken, print_anything, stand_in
from afresh.cli.shell import Group
from afresh.cli.sync_commands import init_kb, reindex, sync
from afresh.errors import AfreshError, AlreadyExists, ConfigError, StoreError, UsageError
from afresh.present.wording import clean
from afresh.text.redact import mask_secrets

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
    """Keep a searchable knowledge base of documentation fresh, and pay only for what changed.

    Exit codes: 0 done, 1 the work failed or is partly done, 2 wrong use or settings,
    3 a run needs confirmation.
    """
    session: Session = ctx.obj
    if version:
        if not session.wrote_json({"version": __version__}):
            click.echo(f"afresh {__version__}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        raise UsageError("name a command: afresh --help lists them")


for each in (
    *(crawl, refresh, schedule, init_kb, watch, serve, worker, plan, confirm, cancel, reindex, sync),
    *(search, mcp, open_page, restore, find_version, sources, show, pages, links, history, attempts, changes),
    *(why, runs, status, change, page, link, remove, doctor, config, demo, migrate, copy, prune, token),
    webhooks,
):
    program.add_command(each)


DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def guarded(arguments: list[str]) -> int:
    """Run the program and return an exit code for every outcome."""
    stand_in()
    print_anything()
    try:
        code = program.main(args=arguments or ["--help"], prog_name="afresh", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up(sys.stdout)  # the reader closed the pipe, such as `head`
        return FAILED
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as wrong:
        return _told(arguments, _sentence(wrong), WRONG_USE)
    except AfreshError as wrong:
        _trace(arguments)
        told = str(wrong)
        if isinstance(wrong, AlreadyExists):  # it names parameters of REST and MCP, which are flags here
            told = told.replace("set `again`", "give --again").replace("give `version`", "give --version")
        return _told(arguments, told, exit_code(wrong))
    except Exception as surprise:
        if isinstance(surprise, OSError) and (surprise.errno in NO_ROOM or is_broken()):
            give_up(sys.stdout)
            return _told([], f"the answer cannot be written: {surprise.strerror}", FAILED)
        _trace(arguments)
        told = f"something went wrong that should not: {type(surprise).__name__}: {surprise}"
        return _told(arguments, f"{told}. Run it again with -vv for the details.", FAILED)
    return int(code or 0) if arguments else WRONG_USE


def exit_code(wrong: AfreshError) -> int:
    """Return 2 for wrong use, settings or store, and 1 for failed work."""
    return WRONG_USE if isinstance(wrong, ConfigError | UsageError | StoreError) else FAILED


def _sentence(wrong: click.ClickException) -> str:
    context = getattr(wrong, "ctx", None)
    told = wrong.format_message().rstrip(".")
    told = f"{told[:1].lower()}{told[1:]}{'' if told.endswith('?') else '.'}"
    return f"{told} Try `{context.command_path} --help`." if context else told


def _told(arguments: list[str], sentence: str, code: int) -> int:
    """Print an error; with --json also as an object, so that scripts always get one document."""
    sentence = mask_secrets(sentence)
    try:
        if _wants_json_log(arguments):
            from afresh.ops.logging import event_line

            print(event_line(sentence, logging.ERROR), end="", file=sys.stderr)
        else:
            for line in sentence.splitlines() or [""]:
                print(f"afresh: {clean(line)}", file=sys.stderr)
    except OSError:
        give_up(sys.stderr)
    if "--json" in before_dashes(arguments):
        from afresh.present.formats import write

        write({"error": sentence, "exit_code": code}, sys.stdout)
        if is_broken():
            give_up(sys.stdout)
    return code


def _wants_json_log(arguments: list[str]) -> bool:
    joined = " ".join(before_dashes(arguments))
    return "--log-format json" in joined or "--log-format=json" in joined


def before_dashes(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _trace(arguments: list[str]) -> None:
    options = before_dashes(arguments)
    loud = sum(each.count("v") for each in options if each.strip("-v") == "" and each[:2] != "--")
    loud += options.count("--verbose")
    if loud > 1 or os.environ.get("AFRESH_DEBUG", "0") not in {"", "0"}:
        import traceback

        if _wants_json_log(arguments):
            from afresh.ops.logging import event_line

            print(event_line(traceback.format_exc(), logging.DEBUG), end="", file=sys.stderr)
        else:
            print(mask_secrets(clean(traceback.format_exc(), lines=True)), file=sys.stderr)
