"""What a run shows while it works: a live line on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from afresh.cli.session import Session
from afresh.events import Event, Notice, Progress, Remaking, Step, Syncing
from afresh.present.safe_text import clean
from afresh.present.wording import count, duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

LINE_SECONDS = 5.0
REFRESHES = 8  # a second
STYLES = {"new": "green", "changed": "yellow", "deleted": "red", "failed": "bold red", "refused": "magenta"}
SHOWN = ("new", "changed", "unchanged", "not_modified", "moved", "deleted", "missing", "refused", "failed")


class Watch(Protocol):
    """Someone who watches a run for the user."""

    def hear(self, event: Event) -> None:
        """Takes an event of the run."""
        ...

    def say(self, text: str) -> None:
        """Shows a sentence now."""
        ...

    def close(self) -> None:
        """Leaves the terminal as it was."""
        ...


class Silence:
    """Watches without a word."""

    def hear(self, event: Event) -> None:
        """Nothing is shown."""

    def say(self, text: str) -> None:
        """Nothing is said."""

    def close(self) -> None:
        """Nothing to put back."""


class Lines:
    """At most one line every few seconds, for logs and pipes."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._next = clock() + LINE_SECONDS

    def hear(self, event: Event) -> None:
        """Prints progress when its time has come, notices at once."""
        match event:
            case Progress() if self._clock() >= self._next:
                self._next = self._clock() + LINE_SECONDS
                self.say(f"{headline(event)}: {outcomes(event)}".removesuffix(": "))
            case Remaking() if self._clock() >= self._next:
                self._next = self._clock() + LINE_SECONDS
                self.say(remaking(event))
            case Syncing() if self._clock() >= self._next:
                self._next = self._clock() + LINE_SECONDS
                self.say(syncing(event))
            case Notice():
                self.say(event.text)
            case Step() if self._session.verbose > 1:
                self.say(f"{event.name} {event.url}")

    def say(self, text: str) -> None:
        """Prints one line."""
        self._session.say(text)

    def close(self) -> None:
        """Nothing to put back."""


class Live:
    """Two lines for each run at the bottom of the terminal that keep up with it and leave when all end."""

    def __init__(self, session: Session) -> None:
        from rich.live import Live as Display
        from rich.spinner import Spinner

        self._session = session
        self._spinner = Spinner("dots", style="cyan")
        self._runs: dict[str, Progress | Remaking | Syncing] = {}
        self._display = Display(
            get_renderable=self._draw, console=session.err, refresh_per_second=REFRESHES, transient=True
        )
        self._display.start()

    def hear(self, event: Event) -> None:
        """Remembers progress for the next refresh; prints notices above the line."""
        match event:
            case Progress():
                self._runs[event.source] = event
            case Remaking():
                self._runs = {"": event}
            case Syncing():
                self._runs = {event.sink: event}
            case Notice():
                self.say(event.text)
            case Step() if self._session.verbose > 1:
                self.say(f"{event.name} {event.url}")

    def say(self, text: str) -> None:
        """Prints a sentence above the live lines."""
        self._session.say(text, style="dim")

    def close(self) -> None:
        """Takes the live lines away and gives the cursor back."""
        self._display.stop()

    def _draw(self) -> "RenderableType":
        from rich.console import Group
        from rich.table import Table

        if not self._runs:
            row = Table.grid(padding=(0, 1))
            row.add_row(self._spinner, "starting …")
            return row
        return Group(*map(self._lines, self._runs.values()))

    def _lines(self, event: Progress | Remaking | Syncing) -> "RenderableType":
        from rich.console import Group
        from rich.table import Table

        row = Table.grid(padding=(0, 1))
        if isinstance(event, Remaking):
            row.add_row(self._spinner, remaking(event), _bar(event.done, event.of))
            return row
        if isinstance(event, Syncing):
            row.add_row(self._spinner, syncing(event))
            return row
        row.add_row(self._spinner, _headline(event), _bar(event.done, event.done + event.queued))
        return Group(row, _outcomes(event))


def headline(event: Progress) -> str:
    """`python-docs: 312 done, 85 queued, 140/s, 12 s`."""
    rate = event.done / event.seconds if event.seconds > 0 else 0
    return (
        f"{clean(event.source)}: {count(event.done)} done, {count(event.queued)} queued, "
        f"{rate:,.0f}/s, {duration(event.seconds)}"
    )


def remaking(event: Remaking) -> str:
    """`reindex: 512 of 6,331 chunks`."""
    return f"{event.task}: {count(event.done)} of {count(event.of)} {event.what}"


def syncing(event: Syncing) -> str:
    """`team-docs: uploaded 120, replaced 3`."""
    done = ", ".join(f"{name} {count(number)}" for name, number in event.counts.items() if number)
    return f"{clean(event.sink)}: {done or 'comparing'}"


def outcomes(event: Progress) -> str:
    """`new 300, failed 1`: the counts that are not zero."""
    return ", ".join(f"{word(name)} {count(event.counts[name])}" for name in _present(event))


def word(name: str) -> str:
    """A count's name as it is shown."""
    return name.replace("_", " ")


def _present(event: Progress) -> list[str]:
    return [name for name in SHOWN if event.counts.get(name)]


def _headline(event: Progress) -> "Text":
    from rich.text import Text

    rate = event.done / event.seconds if event.seconds > 0 else 0
    return Text.assemble(
        (clean(event.source), "bold"),
        f"  {count(event.done)} done",
        (f" · {count(event.queued)} queued · {rate:,.0f}/s · {duration(event.seconds)}", "dim"),
    )


def _bar(done: int, total: int) -> "RenderableType":
    from rich.progress_bar import ProgressBar

    return ProgressBar(
        total=max(total, 1), completed=done, width=24, style="bright_black", complete_style="cyan"
    )


def _outcomes(event: Progress) -> "Text":
    from rich.text import Text

    line = Text("  ")
    for number, name in enumerate(_present(event)):
        line.append(" · " if number else "", "dim")
        line.append(f"{word(name)} {count(event.counts[name])}", STYLES.get(name, ""))
    return line


def watch_for(session: Session) -> Watch:
    """The watch that fits where stderr goes."""
    if session.quiet:
        return Silence()
    terminal: Console = session.err
    return Live(session) if terminal.is_terminal and not terminal.is_dumb_terminal else Lines(session)


@contextmanager
def watching(session: Session) -> Iterator[Watch]:
    """A watch for the time of a run."""
    watch = watch_for(session)
    try:
        yield watch
    finally:
        watch.close()
