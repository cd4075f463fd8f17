"""A clock for one run: it may be set forward, but never goes back."""

from datetime import datetime, timedelta

from afresh.ports import Clock


class Steady:
    """Gives the time of another clock; when that is set back, time goes on from where it was.

    What waits for its time within a run was dated by this clock, so it comes due whatever the other one says.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock()
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        said = self._clock()
        if said < self._last:
            self._ahead += self._last - said
        self._last = said
        return said + self._ahead
