"""The program with all commands, in the order of its help, and its exit codes."""

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

import click

from afresh import __version__
from afresh.cli.session import Session, discard_buffer, is_stdout_broken, open_missing_streams, replace_unencodable
from afresh.cli.shell import Group
from afresh.errors import AfreshError, AlreadyExists, ConfigError, StoreError, UsageError

COMMANDS = {  # where each command is, in the order of the help
    "crawl": "run_commands.crawl",
    "refresh": "run_commands.refresh",
    "schedule": "schedule_commands.schedule",
    "init-kb": "sync_commands.init_kb",
    "watch": "schedule_commands.watch",
    "serve": "serve_commands.serve",
    "worker": "serve_commands.worker",
    "plan": "run_commands.plan",
    "confirm": "run_commands.confirm",
    "cancel": "run_commands.cancel",
    "reindex": "sync_commands.reindex",
    "sync": "sync_commands.sync",
    "search": "search_commands.search",
    "eval": "search_commands.evaluate",
    "mcp": "serve_commands.mcp",
    "open": "read_commands.open_page",
    "restore": "read_commands.restore",
    "find-version": "read_commands.find_version",
    "sources": "read_commands.sources",
    "show": "read_commands.show",
    "pages": "read_commands.pages",
    "links": "read_commands.links",
    "history": "read_commands.history",
    "attempts": "read_commands.attempts",
    "changes": "read_commands.changes",
    "why": "read_commands.why",
    "runs": "read_commands.runs",
    "status": "read_commands.status",
    "set": "edit_commands.change",
    "page": "edit_commands.page",
    "link": "edit_commands.link",
    "remove": "maintenance_commands.remove",
    "doctor": "maintenance_commands.doctor",
    "config": "maintenance_commands.config",
    "demo": "maintenance_commands.demo",
    "migrate": "maintenance_commands.migrate",
    "copy": "maintenance_commands.copy",
    "prune": "maintenance_commands.prune",
    "token": "access_commands.token",
    "webhooks": "access_commands.webhooks",
}
START = (
    "afresh crawl https://docs.example.org/   add a site and crawl it",
    "afresh refresh                           check all pages, process only what changed",
    "afresh search retry with back-off        find passages",
    "afresh demo                              see it all in a few seconds",
)
DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(Mapping[str, click.Command]):
    """All commands by name; imports the module of a command only when the command is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module, attribute = COMMANDS[name].split(".")
        command: click.Command = getattr(import_module(f"afresh.cli.{module}"), attribute)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@click.group(
    "afresh",
    cls=Group,
    commands=_Commands(),
    subcommand_metavar="COMMAND [ARGS]...",
    examples=START,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def program(ctx: click.Context, version: bool) -> None:
    """Keep a searchable copy of documentation fresh, and process only what changed.

    Exit codes: 0 success, 1 failed or partially completed, 2 wrong usage or settings,
    3 a run needs confirmation.
    """
    session: Session = ctx.obj
    if version:
        if not session.wrote_json({"version": __version__}):
            click.echo(f"afresh {__version__}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        raise UsageError("no command was given; `afresh --help` lists all commands")


def run_program(arguments: list[str]) -> int:
    open_missing_streams()
    replace_unencodable()
    try:
        code = program.main(args=arguments or ["--help"], prog_name="afresh", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_buffer(sys.stdout)  # the reader closed the pipe, such as `head`
        return FAILED
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as wrong:
        return _report(arguments, _sentence(wrong), WRONG_USE)
    except AfreshError as wrong:
        _trace(arguments)
        message = str(wrong)
        if isinstance(wrong, AlreadyExists):  # the message names parameters of REST and MCP; here they are flags
            message = message.replace("set `again`", "give --again").replace("give `version`", "give --version")
        return _report(arguments, message, exit_code(wrong))
    except Exception as surprise:
        if isinstance(surprise, OSError) and (surprise.errno in NO_ROOM or is_stdout_broken()):
            discard_buffer(sys.stdout)
            return _report([], f"cannot write the output: {surprise.strerror}", FAILED)
        _trace(arguments)
        message = f"unexpected error: {type(surprise).__name__}: {surprise}"
        return _report(arguments, f"{message}. Run it again with -vv for details.", FAILED)
    return int(code or 0) if arguments else WRONG_USE


def exit_code(wrong: AfreshError) -> int:
    """Return 2 for an error in usage, settings or store, and 1 for failed work."""
    return WRONG_USE if isinstance(wrong, ConfigError | UsageError | StoreError) else FAILED


def _sentence(wrong: click.ClickException) -> str:
    context = getattr(wrong, "ctx", None)
    message = wrong.format_message().rstrip(".")
    if context and isinstance(context.command, click.Group) and message == "Missing command":
        message += f": {', '.join(context.command.commands)}"
    message = f"{message[:1].lower()}{message[1:]}{'' if message.endswith('?') else '.'}"
    return f"{message} Try `{context.command_path} --help`." if context else message


def _report(arguments: list[str], sentence: str, code: int) -> int:
    """Print an error to stderr and, with --json, an error object to stdout; return the exit code."""
    from afresh.present.wording import clean
    from afresh.text.redact import mask_secrets

    sentence = mask_secrets(sentence)
    try:
        lines = "\n".join(f"afresh: {clean(line)}" for line in sentence.splitlines() or [""])
        _write_error(arguments, sentence, lines, "ERROR")
    except OSError:
        discard_buffer(sys.stderr)
    if "--json" in before_dashes(arguments):
        from afresh.present.formats import write

        write({"error": sentence, "exit_code": code}, sys.stdout)
        if is_stdout_broken():
            discard_buffer(sys.stdout)
    return code


def _write_error(arguments: list[str], event: str, lines: str, level: str) -> None:
    """Write an event to stderr: as a JSON log line with `--log-format json`, else as text."""
    joined = " ".join(before_dashes(arguments))
    if "--log-format json" in joined or "--log-format=json" in joined:
        import logging

        from afresh.ops.logging import event_line

        lines = event_line(event, logging.getLevelNamesMapping()[level]).rstrip("\n")
    print(lines, file=sys.stderr)


def before_dashes(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _trace(arguments: list[str]) -> None:
    options = before_dashes(arguments)
    loud = sum(each.count("v") for each in options if each.strip("-v") == "" and each[:2] != "--")
    loud += options.count("--verbose")
    if loud > 1 or os.environ.get("AFRESH_DEBUG", "0") not in {"", "0"}:
        import traceback

        from afresh.present.wording import clean
        from afresh.text.redact import mask_secrets

        trace = traceback.format_exc()
        _write_error(arguments, trace, mask_secrets(clean(trace, lines=True)), "DEBUG")
