"""One invocation of the command line: its settings, its output streams and its verbosity."""

import codecs
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from afresh.dataclass import dataclass, replace
from afresh.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from afresh.config import Config
    from afresh.kb import KnowledgeBase
    from afresh.ports import StoreAccess

ERRORS = "afresh.nearest"
# Replacements for symbols in our output that the terminal cannot encode.
NEAREST = {"✓": "+", "✗": "x", "·": "-", "–": "-", "…": "...", "→": "->", "›": ">", "━": "-", "╸": "-"}
Answer = TypeVar("Answer")


def open_missing_streams() -> None:
    """Open the null device for each closed standard stream, so that no other file gets its file descriptor."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def is_stdout_broken() -> bool:
    """Return whether stdout cannot be written any more, such as on a full disk."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def replace_unencodable() -> None:
    """Replace characters that stdout and stderr cannot encode by similar ones or question marks."""
    codecs.register_error(ERRORS, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def discard_buffer(stream: TextIO) -> None:
    """Discard what a stream still buffers: its reader is gone, or the disk is full."""
    with suppress(OSError, ValueError):  # a stream without a file descriptor buffers nothing
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _nearest(wrong: UnicodeError) -> tuple[str, int]:
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    return "".join(NEAREST.get(sign, "?") for sign in wrong.object[wrong.start : wrong.end]), wrong.end


@dataclass(frozen=True)
class Session:
    config_file: Path | None = None
    store: str | None = None
    json: bool = False
    csv: bool = False
    verbose: int = 0
    quiet: bool = False
    log_format: str | None = None

    def after(self, name: str, value: Any) -> "Session":
        """Return the session with one more command-line option; an empty `value` changes nothing."""
        added = self.verbose + value if name == "verbose" else value
        return replace(self, **{name: added}) if value else self

    @cached_property
    def config(self) -> "Config":
        from afresh.config.layers import load, unknown_variables

        for unknown in unknown_variables(os.environ):
            self.say(f"note: {unknown}", "yellow")
        flags: dict[str, object] = {"store.url": self.store} if self.store else {}
        if self.log_format:
            flags["log.format"] = self.log_format
        return load(self.config_file, os.environ, flags, here())

    @cached_property
    def now(self) -> datetime:
        return datetime.now(UTC)

    @cached_property
    def out(self) -> "Console":
        return _console(stderr=False)

    @cached_property
    def err(self) -> "Console":
        return _console(stderr=True)

    def wrote_json(self, value: object) -> bool:
        """Write `value` as JSON if requested; return whether JSON was requested."""
        if self.json:
            from afresh.present.formats import write

            write(value, sys.stdout)
        return self.json

    def wrote_rows(self, rows: Sequence[object], kind: type) -> bool:
        """Write `rows` as CSV or JSON if requested; return whether one of them was requested."""
        if not self.csv:
            return self.wrote_json(rows)
        if self.json:
            raise UsageError("--csv and --json: choose one")
        from afresh.present.formats import write_csv

        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        write_csv(rows, kind, sys.stdout)
        return True

    def answer(self, value: Any, view: str, *more: object, rows: type | None = None, **options: object) -> None:
        """Write `value` as JSON, or as CSV with rows of type `rows`, if requested; else draw it on the terminal.

        `view` names the function that draws it, such as `lists.runs`; it also gets `more` and `options`.
        """
        if not (self.wrote_json(value) if rows is None else self.wrote_rows(value, rows)):
            module, _, name = view.partition(".")
            draw = getattr(import_module(f"afresh.cli.{module}"), name)  # rich is imported only now
            self.show(draw(value, *more, **options))

    def inform(self, value: object, sentence: str) -> None:
        if not self.wrote_json(value):
            from afresh.present.wording import clean

            self.show(clean(sentence))

    def show(self, answer: "RenderableType") -> None:
        """Print an answer for people; if stdout is not a terminal, without trailing spaces."""
        if self.out.is_terminal:
            self.out.print(answer)
            return
        with self.out.capture() as captured:
            self.out.print(answer)
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().rstrip("\n").split("\n")))

    def write(self, text: str) -> None:
        """Print text without wrapping or cutting it; on a terminal, make control characters visible."""
        from afresh.present.wording import clean, inert

        printable = clean(text, lines=True) if self.out.is_terminal else inert(text)
        sys.stdout.write(printable if printable.endswith("\n") else f"{printable}\n")

    def write_event(self, event: object, line: str) -> None:
        """Print an event immediately as a line, or with --json as an object on one line."""
        if self.json:
            from afresh.present.formats import write_line

            write_line(event, sys.stdout)
        else:
            self.write(line)
            sys.stdout.flush()

    def say(self, text: str, style: str = "") -> None:
        """Print a message on stderr, unless --quiet."""
        if not self.quiet:
            from rich.text import Text

            from afresh.ops.logging import event_line
            from afresh.present.wording import clean
            from afresh.text.redact import mask_secrets

            try:
                if self.log_format == "json":
                    sys.stderr.write(event_line(text))
                    sys.stderr.flush()
                else:
                    self.err.print(Text(clean(mask_secrets(text)), style=style))
            except OSError:  # a full disk under the log must not stop the work
                discard_buffer(sys.stderr)

    def ask(
        self,
        question: Callable[["KnowledgeBase"], Awaitable[Answer]],
        config: "Config | None" = None,
        *,
        access: "StoreAccess | None" = None,
        open_when_up: "Callable[[Callable[[], Awaitable[KnowledgeBase]]], Awaitable[KnowledgeBase]] | None" = None,
    ) -> Answer:
        """Open the knowledge base, return the result of `question`, and close the knowledge base.

        Defaults are the settings of the session and read access. `open_when_up`, if given, calls the function that
        opens the knowledge base until the store answers.
        """
        import asyncio

        from afresh.ports import StoreAccess

        async def work() -> Answer:
            opened = partial(self.open_kb, config or self.config, access or StoreAccess.READ)
            kb = await (open_when_up(opened) if open_when_up else opened())
            start_collecting()
            try:
                for label in _typed_labels():
                    if note := await kb.sources.version_note(label):
                        self.say(note)  # says which version a name without a version means
                return await question(kb)
            finally:
                await kb.close()

        with self.record_logs(config):
            return asyncio.run(work())

    async def open_kb(self, config: "Config", access: "StoreAccess") -> "KnowledgeBase":
        """Open the knowledge base with the settings `config`; the slow imports happen here."""
        from afresh.app import build

        return await build(config, access=access)

    @contextmanager
    def record_logs(self, config: "Config | None" = None) -> Iterator[None]:
        from afresh.ops import logging, tracing

        own = config or self.config
        as_json = self.log_format == "json"
        with (
            logging.configure_logging(own, verbose=self.verbose, quiet=self.quiet, as_json=as_json),
            tracing.export_spans(own),
        ):
            yield


def start_collecting() -> None:
    """Start the garbage collector if `main` stopped it; objects that exist already are never collected."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise UsageError("the current folder does not exist any more: change to another one") from None


def _typed_labels() -> list[str]:
    context = click.get_current_context(silent=True)
    # `remove` refuses such names, and `search` prints its own notes
    if context is None or context.info_name in ("remove", "search"):
        return []
    names = ("target",) if context.info_name == "plan" else ("label", "labels", "within")
    given = [context.params.get(name) for name in names]
    typed = [each for value in given for each in (value if isinstance(value, tuple) else (value,))]
    return [each for each in typed if isinstance(each, str)]


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Do not wrap lines in a pipe, so that grep and awk see whole ones.
    width = None if stream.isatty() else 10_000
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)
