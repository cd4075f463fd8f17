"""What a run may spend on a model, whoever of it asks."""


class Allowance:
    """Counts the calls of one run; summaries and link scores share it."""

    def __init__(self, per_run: int | None = None, per_day: int | None = None, spent_today: int = 0) -> None:
        self.calls = 0
        self._per_run = per_run
        self._per_day = per_day
        self._spent_today = spent_today  # by other runs

    @property
    def refusal(self) -> str | None:
        """Why no further call may be made, or None if one may."""
        if self._per_run is not None and self.calls >= self._per_run:
            return f"ai.budget_per_run ({self._per_run}) is spent: the rest follows with the next run"
        if self._per_day is not None and self._spent_today + self.calls >= self._per_day:
            return f"ai.budget_per_day ({self._per_day}) is spent: the rest follows with a run tomorrow"
        return None

    def spend(self) -> None:
        """One call is about to be made."""
        self.calls += 1
