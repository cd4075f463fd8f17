"""A clock that moves only when told to."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FrozenClock:
    """Fulfils `ports.Clock`: gives the same aware UTC time until it is moved."""

    def __init__(self, at: datetime = START) -> None:
        self._at = _utc(at)

    def __call__(self) -> datetime:
        return self._at

    def advance(self, seconds: float = 0.0, **more: float) -> datetime:
        """Move the clock, backwards too, by seconds or other parts of a `timedelta`; gives the new time."""
        self._at += timedelta(seconds=seconds, **more)
        return self._at

    def set(self, at: datetime) -> None:
        """Move the clock to a time."""
        self._at = _utc(at)


def _utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone: write datetime(…, tzinfo=UTC)")
    return at.astimezone(UTC)
