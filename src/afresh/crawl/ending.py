"""How a run ends, as one value that a store writes whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afresh.model.records import Page, PageId, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The last word on a run."""

    state: RunState
    counts: Mapping[str, int]
    notes: Sequence[str] = ()
    error: str | None = None
    missing: Sequence[Page] | None = None  # unreached pages as counted; None: absence proves nothing
    dropped: Sequence[Page] = ()  # pages whose content goes
    heirs: Mapping[PageId, Page] = field(
        default_factory=dict
    )  # of those that moved: who takes their identity
    root: str | None = None  # where the root of the source is now
    letters: Sequence[tuple[str, str]] = ()  # whom to tell, and of which event
    forgives: bool = False  # what the run took for gone is forgotten: it did not see clearly
    mark: str | None = None  # the state of the source that was read whole, to be known again
