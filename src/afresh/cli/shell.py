"""How commands are made: the options every command takes, help in sections, examples."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from afresh.cli.session import Session

SECTIONS = ("Keep fresh", "Find", "Look into", "Look after")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _note(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Keeps an option that every command takes; what stands after the command's name wins."""
    before = ctx.obj if isinstance(ctx.obj, Session) else Session()
    ctx.obj = before.after(str(param.name), value)


def shared_options() -> list[click.Parameter]:
    """The options that work before and after the command's name."""
    common: dict[str, Any] = {"expose_value": False, "callback": _note, "is_eager": True}
    return [
        click.Option(
            ["--config", "config_file"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Settings file (else AFRESH_CONFIG, ./afresh.yaml, …).",
            **common,
        ),
        click.Option(
            ["--store"],
            metavar="URL",
            help="The store, as sqlite:///FILE or postgresql://… (AFRESH_STORE).",
            **common,
        ),
        click.Option(["--json"], is_flag=True, help="Answer with one JSON document on stdout.", **common),
        click.Option(
            ["-v", "--verbose"],
            count=True,
            help="Tell more; twice: also tracebacks and every step.",
            **common,
        ),
        click.Option(
            ["--log-format"],
            type=click.Choice(["text", "json"]),
            metavar="FORM",
            help="How events are logged, text or json (log.format), on stderr too.",
            **common,
        ),
        click.Option(
            ["-q", "--quiet"], is_flag=True, help="No progress, no messages, only the answer.", **common
        ),
    ]


def as_rows(function: Decorated) -> Decorated:
    """Lets a command that lists answer with CSV."""
    return click.option(
        "--csv",
        is_flag=True,
        expose_value=False,
        callback=_note,
        is_eager=True,
        help="Answer with CSV on stdout, one row each.",
    )(function)


class Argument(click.Argument):
    """An argument with a line of explanation."""

    def __init__(self, *args: Any, note: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.note = note


def _write_parameters(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Writes arguments and options, those of every command last and apart."""
    everywhere = {"--help", *(name for each in shared_options() for name in each.opts)}
    arguments: list[tuple[str, str]] = []
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        if isinstance(param, Argument):
            arguments.append((param.make_metavar(ctx), param.note))
        elif record := param.get_help_record(ctx):
            (shared if everywhere & set(param.opts) else own).append(record)
    for heading, rows in (("Arguments", arguments), ("Options", own), ("Options of every command", shared)):
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


def _write_examples(lines: Iterable[str], formatter: click.HelpFormatter) -> None:
    if lines:
        formatter.write_paragraph()
        formatter.write("Examples:\n" + "".join(f"  {line}\n" for line in lines))


class Command(click.Command):
    """A command with the options of every command, a section of the overview, and examples."""

    def __init__(self, *args: Any, section: str = "", examples: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += shared_options()
        self.section = section
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its own options first, those of every command apart."""
        _write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, line by line as they are typed."""
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """Commands listed by what they are for."""

    def __init__(self, *args: Any, section: str = "", examples: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += shared_options()
        self.section = section
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first, then the options."""
        self.format_commands(ctx, formatter)
        _write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, line by line as they are typed."""
        _write_examples(self.examples, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list for each section, in the order the commands were added."""
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
        """In the order they were added."""
        return list(self.commands)


def command(section: str, *examples: str, name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Makes a command of a function that takes the session and returns an exit code (None is 0)."""

    def make(function: Callable[..., Any]) -> Command:
        made = click.command(name, cls=Command, section=section, examples=examples)
        return made(click.pass_obj(function))

    return make


def argument(name: str, metavar: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """An argument with its line of help."""
    return click.argument(name, cls=Argument, metavar=metavar, note=text, **more)


def option(*names: str, metavar: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """An option that takes a value."""
    return click.option(*names, metavar=metavar, help=text, **more)


def switch(*names: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """An option that is on when it is given."""
    return click.option(*names, is_flag=True, help=text, **more)
