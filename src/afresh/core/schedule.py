"""When to look again: back-off after failures and the ordinary interval."""

from datetime import datetime, timedelta

from afresh.core.model import Policy


def backoff_seconds(failures: int, base: float, longest: float) -> float:
    """The pause after the n-th failure in a row: base, doubled each time, never above `longest`."""
    if failures < 1:
        return 0.0
    doublings = min(failures - 1, 60)
    return float(min(longest, base * 2**doublings))


def next_regular_look(now: datetime, policy: Policy) -> datetime:
    """When a page that answered is looked at again."""
    return now + timedelta(seconds=policy.recheck_seconds)


def next_look_after_failure(
    now: datetime, failures: int, policy: Policy, retry_after: float | None = None
) -> datetime:
    """When a page that failed is tried again: never before the server's Retry-After."""
    pause = backoff_seconds(failures, policy.backoff_base_seconds, policy.backoff_max_seconds)
    return now + timedelta(seconds=max(pause, retry_after or 0.0))
