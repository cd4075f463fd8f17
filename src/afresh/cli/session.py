"""One invocation of the command line: its settings, where it prints, and how loudly."""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from afresh.cli import opening
from afresh.cli.streams import give_up
from afresh.config import Config, load
from afresh.errors import UsageError
from afresh.ports import Access

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from afresh.kb import KnowledgeBase

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Session:
    """What the user asked for around the command itself."""

    config_file: Path | None = None
    store: str | None = None
    json: bool = False
    csv: bool = False
    verbose: int = 0
    quiet: bool = False
    log_format: str | None = None

    def after(self, name: str, value: Any) -> "Session":
        """The session with one more option of the command line; an option not given changes nothing."""
        if not value:
            return self
        return replace(self, **{name: self.verbose + value if name == "verbose" else value})

    @cached_property
    def config(self) -> Config:
        """The settings of this invocation, read when first needed."""
        flags: dict[str, object] = {"store.url": self.store} if self.store else {}
        if self.log_format:
            flags["log.format"] = self.log_format
        return load(self.config_file, os.environ, flags, here())

    @cached_property
    def now(self) -> datetime:
        """The moment that relative times are counted from."""
        return datetime.now(UTC)

    @cached_property
    def out(self) -> "Console":
        """Where answers go."""
        return _console(stderr=False)

    @cached_property
    def err(self) -> "Console":
        """Where progress and messages go."""
        return _console(stderr=True)

    def wrote_json(self, value: object) -> bool:
        """Whether the answer was wanted as JSON, and so has been written."""
        if self.json:
            from afresh.present.as_json import write

            write(value, sys.stdout)
        return self.json

    def wrote_rows(self, rows: Sequence[object], kind: type) -> bool:
        """Whether the list was wanted as CSV or JSON, and so has been written."""
        if not self.csv:
            return self.wrote_json(rows)
        if self.json:
            raise UsageError("--csv and --json: choose one")
        from afresh.cli.as_csv import write

        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        write(rows, kind, sys.stdout)
        return True

    def show(self, answer: "RenderableType") -> None:
        """Prints an answer for people; in a pipe without spaces at the ends of lines."""
        if self.out.is_terminal:
            self.out.print(answer)
            return
        with self.out.capture() as captured:
            self.out.print(answer)
        lines = captured.get().rstrip("\n").split("\n")
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))

    def write(self, text: str) -> None:
        """Prints text line by line; nothing is wrapped or cut, and on a terminal nothing is unseen."""
        from afresh.present.safe_text import clean, inert

        shown = clean(text, lines=True) if self.out.is_terminal else inert(text)
        sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")

    def say(self, text: str, style: str = "") -> None:
        """One sentence beside the answer; silent with --quiet."""
        if not self.quiet:
            from rich.text import Text

            from afresh.ops.logging import event_line
            from afresh.present.safe_text import clean
            from afresh.text.redact import mask_secrets

            try:
                if self.log_format == "json":
                    sys.stderr.write(event_line(text))
                    sys.stderr.flush()
                else:
                    self.err.print(Text(clean(mask_secrets(text)), style=style))
            except OSError:  # a full disk under the log is no reason to stop the work
                give_up(sys.stderr)

    def ask(
        self,
        question: Callable[["KnowledgeBase"], Awaitable[Answer]],
        config: Config | None = None,
        *,
        access: Access = Access.READ,
    ) -> Answer:
        """The answer of the knowledge base, which is open just for this."""
        import asyncio

        async def work() -> Answer:
            kb = await opening.open_kb(config or self.config, access)
            try:
                await self.tell_versions(kb)
                return await question(kb)
            finally:
                await kb.close()

        with self.logged(config):
            return asyncio.run(work())

    async def tell_versions(self, kb: "KnowledgeBase") -> None:
        """Say which version is taken for each name that was typed without one."""
        for label in _typed_labels():
            if note := await kb.sources.version_note(label):
                self.say(note)

    @contextmanager
    def logged(self, config: Config | None = None) -> Iterator[None]:
        """The log and what is told to tracing systems, kept while the command works."""
        from afresh.ops import logging, otel

        own = config or self.config
        as_json = self.log_format == "json"
        with (
            logging.kept(own, verbose=self.verbose, quiet=self.quiet, as_json=as_json),
            otel.kept(own),
        ):
            yield


def here() -> Path:
    """The current folder, which may have been deleted meanwhile."""
    try:
        return Path.cwd()
    except OSError:
        raise UsageError("the current folder is gone: change to one that exists") from None


def _typed_labels() -> list[str]:
    """The names of sources that the command was given."""
    context = click.get_current_context(silent=True)
    if context is None or context.info_name in ("remove", "search"):  # one refuses, one has notes of its own
        return []
    names = ("target",) if context.info_name == "plan" else ("label", "labels", "within")
    given = [context.params.get(name) for name in names]
    typed = [each for value in given for each in (value if isinstance(value, tuple) else (value,))]
    return [each for each in typed if isinstance(each, str)]


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # In a pipe nothing is cut or wrapped, so that grep and awk see whole lines.
    width = None if stream.isatty() else 10_000
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)
