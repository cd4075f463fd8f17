"""What a run may spend on a model, whoever of it asks."""

from dataclasses import dataclass


@dataclass(slots=True)
class Day:
    """The calls of the last 24 hours; runs at the same time share them."""

    limit: int | None = None
    spent: int = 0
    runs: int = 0  # that share it just now


class Allowance:
    """Counts the calls of one run; summaries and link scores share it."""

    def __init__(self, per_run: int | None = None, day: Day | None = None) -> None:
        self.calls = 0
        self._per_run = per_run
        self._day = day or Day()

    @property
    def refusal(self) -> str | None:
        """Why no further call may be made, or None if one may."""
        if self._per_run is not None and self.calls >= self._per_run:
            return (
                f"ai.budget_per_run ({self._per_run:,}) is spent: the rest follows with the next run, "
                "or raise it (null: no limit)"
            )
        if self._day.limit is not None and self._day.spent >= self._day.limit:
            return (
                f"ai.budget_per_day ({self._day.limit:,}) is spent: the rest follows with a run tomorrow, "
                "or raise it (null: no limit)"
            )
        return None

    def spend(self) -> None:
        """One call is about to be made."""
        self.calls += 1
        self._day.spent += 1
