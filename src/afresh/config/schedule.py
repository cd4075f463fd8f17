"""The schedule that the policy of a source asks for."""

from zoneinfo import ZoneInfo

from afresh.config.tree import PolicySettings
from afresh.schedule.rules import Schedule, parse_schedule


def schedule_of(policy: PolicySettings) -> Schedule | None:
    """When the source is looked at by itself; None where only people ask for it."""
    if policy.schedule is None:
        return None
    return parse_schedule(
        policy.schedule,
        ZoneInfo(policy.time_zone),
        jitter_seconds=policy.jitter_seconds,
        budget=policy.budget,
    )
