"""When a source is looked at by itself: at the times of cron, at an interval, or as its pages need it."""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import floor

from afresh.errors import UsageError
from afresh.model.records import RunId, SourceId
from afresh.schedule.cron import Cron, CronError, parse_cron
from afresh.text.durations import read_duration

SHORTEST = timedelta(minutes=1)  # between two runs of one source
BATCH = 100  # looks of one run under `auto`, where the budget allows for it
AUTO_SHORTEST, AUTO_LONGEST = 300.0, 21_600.0  # seconds between two such runs
_BUDGET = re.compile(r"([0-9]{1,8})\s*(?:/|per )\s*(s|m|h|d)[a-z]*", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """How many looks a source may cost in a length of time."""

    looks: int
    seconds: float

    @property
    def rate(self) -> float:
        """Looks a second."""
        return self.looks / self.seconds

    @property
    def unit(self) -> str:
        """The length of time as it is written."""
        return next(name for name, seconds in _UNITS.items() if seconds == self.seconds)

    @property
    def batch(self) -> tuple[int, float]:
        """The looks of one run, and the seconds from one to the next."""
        seconds = min(AUTO_LONGEST, max(AUTO_SHORTEST, BATCH / self.rate))
        looks = max(1, floor(self.rate * seconds + 1e-9))
        return looks, looks / self.rate


@dataclass(frozen=True, slots=True)
class Every:
    """A time again and again, always as long after the one before."""

    interval: timedelta

    def next_after(self, moment: datetime) -> datetime:
        """One interval after a moment."""
        return moment + self.interval

    def following(self, slot: datetime, now: datetime) -> datetime:
        """The first time after now that is in step with a slot: what was missed is not made up for."""
        missed = max(0, (now - slot) // self.interval)
        return slot + (missed + 1) * self.interval


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of one source, as they were written."""

    text: str
    rule: Cron | Every
    jitter_seconds: float = 0.0
    budget: Budget | None = None  # set where pages are looked at as often as they change

    @property
    def key(self) -> str:
        """What tells two schedules apart: another one is planned anew."""
        zone = f" {self.rule.zone}" if isinstance(self.rule, Cron) else ""
        budget = f" {self.budget.looks}/{self.budget.seconds:g}s" if self.budget else ""
        return f"{self.text}{zone}{budget} ~{self.jitter_seconds:g}"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None if there is none."""
        return self.rule.next_after(moment)

    def following(self, slot: datetime, now: datetime) -> datetime | None:
        """The time after a slot that was used: missed ones have become one."""
        if isinstance(self.rule, Every):
            return self.rule.following(slot, now)
        return self.rule.next_after(max(slot, now))

    def delayed(self, slot: datetime, name: str) -> datetime:
        """When a slot is really used: a part of the jitter later, the same in every process."""
        if not self.jitter_seconds:
            return slot
        digest = hashlib.sha256(f"{name}\n{slot.astimezone(UTC).isoformat()}".encode()).digest()
        share = int.from_bytes(digest[:4], "big") / 2**32
        return slot + timedelta(seconds=round(share * self.jitter_seconds, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Appointment:
    """The next time of a source, and how the last one was used."""

    source: SourceId
    rule: str  # the schedule it was planned by
    slot: datetime  # what the rule says
    next_at: datetime  # with its part of the jitter
    planned_at: datetime
    held_by: str | None = None  # the worker that uses it just now
    run: RunId | None = None  # the run that was last started so
    outcome: str | None = None
    fired_at: datetime | None = None


def parse_schedule(
    text: str, zone: tzinfo = UTC, *, jitter_seconds: float = 0.0, budget: str = "500/h"
) -> Schedule:
    """Read `0 3 * * *`, `@daily`, `every 6h` or `auto`; CronError tells what is wrong."""
    words = " ".join(text.split())
    if words.lower() == "auto":
        limit = parse_budget(budget)
        return Schedule("auto", Every(timedelta(seconds=limit.batch[1])), jitter_seconds, limit)
    if words.lower().startswith("every "):
        return Schedule(words.lower(), Every(_interval(words[6:])), jitter_seconds)
    cron = parse_cron(words, zone)
    if not cron.fires:
        raise CronError("it names a day that never comes")
    return Schedule(cron.expression, cron, jitter_seconds)


def parse_budget(text: str) -> Budget:
    """Read `500/h`; CronError tells what is wrong."""
    found = _BUDGET.fullmatch(text.strip())
    if found is None or int(found[1]) < 1:
        raise CronError(f"expected looks in a length of time such as 500/h or 5000/d, got {text[:40]!r}")
    return Budget(int(found[1]), _UNITS[found[2].lower()])


def _interval(text: str) -> timedelta:
    try:
        interval = read_duration(text)
    except UsageError as wrong:
        raise CronError(str(wrong)) from None
    if interval < SHORTEST:
        raise CronError("the shortest interval is a minute")
    return interval
