"""Exponential backoff: the wait doubles after every failure, up to a maximum."""

from math import inf


def backoff_seconds(failures: int, first: float, max_seconds: float) -> float:
    """Return the wait after `failures` failures in a row: `first` after one, then doubled, at most `max_seconds`."""
    return float(min(max_seconds, first * 2 ** min(failures - 1, 60))) if failures > 0 else 0.0


def next_wait(before: float, first: float, max_seconds: float) -> float:
    """Return the wait that follows a wait of `before` seconds in an exponential backoff; `first` if `before` is 0."""
    return min(max_seconds, max(first, 2 * before))


def wait_to_retry(failures: int, asked: float | None, *, tries: int, first: float, max_seconds: float) -> float | None:
    """Return the seconds to wait, as `asked` or exponential; None after `tries`, or if it exceeds `max_seconds`."""
    wait = backoff_seconds(failures, first, inf) if asked is None else asked
    return wait if failures < tries and wait <= max_seconds else None
