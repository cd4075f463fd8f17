"""Events that afresh sends while it works, to show progress; results never depend on them."""

from collections.abc import Callable, Mapping

from afresh.dataclass import dataclass
from afresh.model.records import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a run; sent a few times per second at most."""

    run: RunId
    source: str
    done: int  # attempts finished in this run
    queued: int  # attempts of this run still open, active ones included
    counts: Mapping[str, int]  # the counts of RunReport so far
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceProgress:
    """The progress of a long task: `done` of `of` items are processed."""

    what: str  # the kind of the items, such as pages or chunks
    done: int
    of: int
    task: str = "reindex"  # or copy, prune, eval


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncProgress:
    """The progress of a sync to an external store."""

    sink: str
    counts: Mapping[str, int]  # the counts of SyncReport so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One sentence to show to the user immediately, such as on a pause, a resumed run or a limit."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStep:
    """One numbered step of a page visit, as docs/explanation/architecture.md lists them."""

    name: str
    url: str


Event = Progress | MaintenanceProgress | SyncProgress | Notice | PageStep
Listener = Callable[[Event], None]


class WithoutSteps:
    """Marks a listener that needs no `PageStep` events, so that the five events of each page are not created."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __call__(self, event: Event) -> None:
        self._listener(event)


def ignore(event: object) -> None:
    """Do nothing: the listener of callers that need no events and no reports."""
