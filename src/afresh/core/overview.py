"""What an overview shows of a source: its numbers, how fresh it is, and how its last run went."""

from dataclasses import dataclass
from datetime import datetime

from afresh.core.views import RunReport, SourceView


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGlance:
    """A source at a glance."""

    label: str
    view: SourceView
    due: int  # pages whose time has come
    next_at: datetime | None  # when the next of the others is due
    run: RunReport | None  # the last one, as far as it is

    @property
    def fresh(self) -> int | None:
        """The share of its pages whose time has not come, in full percent; 100 means all."""
        if not self.view.pages:
            return None
        return max(0, 100 * (self.view.pages - self.due) // self.view.pages)
