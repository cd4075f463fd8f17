"""Build commands: shared options, help in sections, examples."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import click

from afresh.cli.session import Session
from afresh.errors import ConfigError, UsageError

LABEL = ("label", "LABEL", "The source, as NAME or NAME@VERSION.")  # an argument of many commands
SECTIONS = ("Keep fresh", "Find", "Inspect", "Manage")
Word = TypeVar("Word", bound=StrEnum)
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _note(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Store a shared option in the session; one after the command name overrides one before it."""
    before = ctx.obj if isinstance(ctx.obj, Session) else Session()
    ctx.obj = before.after(str(param.name), value)


SHARED: dict[str, Any] = {"expose_value": False, "callback": _note, "is_eager": True}


def shared_options() -> list[click.Parameter]:
    return [
        _shared(
            "--config",
            "config_file",
            text="Settings file (default: AFRESH_CONFIG, ./afresh.yaml, …).",
            type=click.Path(path_type=Path),
            metavar="FILE",
        ),
        _shared("--store", text="The store, as sqlite:///FILE or postgresql://… (AFRESH_STORE).", metavar="URL"),
        _shared("--json", text="Print the result as one JSON document.", is_flag=True),
        _shared("-v", "--verbose", text="Verbose; repeat for tracebacks and debug output.", count=True),
        _shared(
            "--log-format",
            text="Format of the log and of messages on stderr: text or json (log.format).",
            type=click.Choice(["text", "json"]),
            metavar="FORM",
        ),
        _shared("-q", "--quiet", text="Print only the result: no progress, no messages.", is_flag=True),
    ]


def _shared(*names: str, text: str, **more: Any) -> click.Option:
    return click.Option(names, help=text, **SHARED, **more)


def as_rows(function: Decorated) -> Decorated:
    return click.option("--csv", is_flag=True, help="Print the result as CSV.", **SHARED)(function)


class Argument(click.Argument):
    def __init__(self, *args: Any, note: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.note = note


class Command(click.Command):
    """A command with the shared options, a section in the overview, and examples."""

    def __init__(self, *args: Any, section: str = "", examples: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += shared_options()
        self.section = section
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everywhere = {"--help", *(name for each in shared_options() for name in each.opts)}
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options of every command": []}
        for param in self.get_params(ctx):
            if isinstance(param, Argument):
                rows["Arguments"].append((param.make_metavar(ctx), param.note))
            elif record := param.get_help_record(ctx):
                shared = everywhere & set(param.opts)
                rows["Options of every command" if shared else "Options"].append(record)
        for heading, lines in rows.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            formatter.write_paragraph()
            formatter.write("Examples:\n" + "".join(f"  {line}\n" for line in self.examples))


class Group(Command, click.Group):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each section, in the order in which the commands were added."""
        for section in (*SECTIONS, ""):
            rows = [
                (name, command.get_short_help_str(limit=100))
                for name, command in self.commands.items()
                if getattr(command, "section", "") == section
            ]
            if rows:
                with formatter.section(section or "Commands"):
                    formatter.write_dl(rows)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@contextmanager
def named(flag: str) -> Iterator[None]:
    from afresh.links.score import KeywordError

    try:
        yield
    except (UsageError, ConfigError, KeywordError) as wrong:
        raise UsageError(f"{flag}: {wrong}") from None


def one_of(kind: type[Word], flag: str, word: str | None) -> Word | None:
    if word is None:
        return None
    try:
        return kind(word.lower())
    except ValueError:
        raise UsageError(f"{flag}: expected one of {', '.join(kind)}, got {word!r}") from None


def command(place: str | Group, *examples: str, name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a function a command, in a section of the overview or in a group.

    The function gets the session and returns an exit code.
    """

    def make(function: Callable[..., Any]) -> Command:
        section = place if isinstance(place, str) else ""
        made = click.command(name, cls=Command, section=section, examples=examples)(click.pass_obj(function))
        if isinstance(place, Group):
            place.add_command(made)
        return made

    return make


def group(name: str, *examples: str) -> Callable[[Callable[..., Any]], Group]:
    return click.group(name, cls=Group, no_args_is_help=False, section="Manage", examples=examples)


def argument(name: str, metavar: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    return click.argument(name, cls=Argument, metavar=metavar, note=text, **more)


def labels(text: str = "Sources, as NAME or NAME@VERSION (default: all).") -> Callable[[Decorated], Decorated]:
    return argument(
        "labels", "[LABEL]...", text, nargs=-1, callback=lambda ctx, param, typed: tuple(dict.fromkeys(typed))
    )


def option(names: str, metavar: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds an option; `names` are its flags and, if needed, its parameter: `--in within`."""
    return click.option(*names.split(), metavar=metavar, help=text, **more)


def switch(names: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    return click.option(*names.split(), is_flag=True, help=text, **more)
