"""What a run tells while it works: for people to look at, never to carry data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from afresh.model.records import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is; sent a few times a second at most."""

    run: RunId
    source: str
    done: int  # attempts finished in this run
    queued: int  # attempts of this run still open, in flight included
    counts: Mapping[str, int]  # the counting fields of RunReport so far
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaking:
    """How far a longer piece of work on the store is."""

    what: str  # pages or chunks
    done: int
    of: int
    task: str = "reindex"  # or copy, or prune


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncing:
    """How far an external store is brought in line."""

    sink: str
    counts: Mapping[str, int]  # the counting fields of SyncReport so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One sentence the user should see now (a pause, a resumed run, a limit that was reached)."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One numbered step of the walk of a page, as docs/architecture.md lists them."""

    name: str
    url: str


Event = Progress | Remaking | Syncing | Notice | Step
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that does not care."""
