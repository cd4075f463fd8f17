"""Parse and apply schedules of sources: cron times, an interval, or `auto` (each page as often as it changes).

A cron expression has five fields or is an alias. `*`, lists, ranges, steps, names of months and days, and 0 or 7
for Sunday have the meaning of crontab. If both day fields are restricted, a day has to match only one of them. A
time that the clocks skip in spring is moved to the end of the gap. A time that occurs twice in autumn is used
once, the first time. A date that does not exist (30 February) is valid and has no next time.
"""

import hashlib
import re
from datetime import UTC, datetime, timedelta, tzinfo
from math import floor

from afresh.dataclass import dataclass
from afresh.errors import UsageError
from afresh.model.records import RunId, SourceId
from afresh.text.quantities import read_duration

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MAX_CHARS = 200
_FIELDS = {
    "minute": "minutes are 0 to 59",
    "hour": "hours are 0 to 23",
    "day-of-month": "days are 1 to 31",
    "month": "months are 1 to 12 or JAN to DEC",
    "day-of-week": "days of the week are 0 to 7 or SUN to SAT",
}
_ANY = datetime(2024, 1, 1, tzinfo=UTC)


class CronError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid cron expression in a time zone; `fires` is False if its date does not exist, such as 30 February."""

    expression: str
    zone: tzinfo = UTC
    fires: bool = True

    def next_after(self, moment: datetime) -> datetime | None:
        if not self.fires:
            return None
        from cronsim import CronSim

        times = CronSim(ALIASES.get(self.expression, self.expression), moment.astimezone(self.zone))
        found = next(times, None)
        return found.astimezone(UTC) if found else None


def parse_cron(text: str, zone: tzinfo = UTC) -> Cron:
    expression = " ".join(text.split())
    if len(expression) > MAX_CHARS:
        raise CronError(f"it is longer than {MAX_CHARS} characters")
    if expression.startswith("@"):
        if expression.lower() not in ALIASES:
            raise CronError(f"{expression} is not one of {', '.join(ALIASES)}")
        return Cron(expression.lower(), zone)
    fields = expression.split(" ") if expression else []
    if len(fields) != len(_FIELDS):
        raise CronError(f"it has {len(fields)} {'field' if len(fields) == 1 else 'fields'}, not five")
    for number, (name, takes) in enumerate(_FIELDS.items()):
        if not _parses(["*"] * number + [fields[number]] + ["*"] * (4 - number)):
            raise CronError(f'the {name} field is wrong: "{fields[number][:40]}"; {takes}')
    return Cron(expression, zone, fires=_parses(fields))


def _parses(fields: list[str]) -> bool:
    from cronsim import CronSim, CronSimError

    try:
        CronSim(" ".join(fields), _ANY)
    except (CronSimError, ValueError, AssertionError):  # the last two for steps that are not numbers
        return False
    return True


MIN_INTERVAL = timedelta(minutes=1)  # between two runs of one source
BATCH = 100  # checks per run with `auto`, if the budget allows it
MIN_AUTO_SECONDS, MAX_AUTO_SECONDS = 300.0, 21_600.0  # seconds between two such runs
_BUDGET = re.compile(r"([0-9]{1,8})\s*(?:/|per )\s*(s|m|h|d)[a-z]*", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum number of page checks (`looks`) in a period."""

    looks: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.looks / self.seconds

    @property
    def unit(self) -> str:
        return next(name for name, seconds in _UNITS.items() if seconds == self.seconds)

    @property
    def batch(self) -> tuple[int, float]:
        """Return the checks per run, and the seconds between two runs."""
        seconds = min(MAX_AUTO_SECONDS, max(MIN_AUTO_SECONDS, BATCH / self.rate))
        looks = max(1, floor(self.rate * seconds + 1e-9))
        return looks, looks / self.rate


@dataclass(frozen=True, slots=True)
class Interval:
    interval: timedelta

    def next_after(self, moment: datetime) -> datetime:
        return moment + self.interval

    def following(self, slot: datetime, now: datetime) -> datetime:
        """Return the first time after `now` that is a multiple of the interval after `slot`."""
        missed = max(0, (now - slot) // self.interval)
        return slot + (missed + 1) * self.interval


@dataclass(frozen=True, slots=True)
class Schedule:
    text: str
    rule: Cron | Interval
    jitter_seconds: float = 0.0
    budget: Budget | None = None  # set if pages are checked as often as they change

    @property
    def key(self) -> str:
        """Return a text that identifies the schedule; if the stored text differs, the next run is planned again."""
        zone = f" {self.rule.zone}" if isinstance(self.rule, Cron) else ""
        budget = f" {self.budget.looks}/{self.budget.seconds:g}s" if self.budget else ""
        return f"{self.text}{zone}{budget} ~{self.jitter_seconds:g}"

    def next_after(self, moment: datetime) -> datetime | None:
        return self.rule.next_after(moment)

    def following(self, slot: datetime, now: datetime) -> datetime | None:
        """Return the first scheduled time after both `slot` and `now`; missed times are skipped."""
        if isinstance(self.rule, Interval):
            return self.rule.following(slot, now)
        return self.rule.next_after(max(slot, now))

    def delayed(self, slot: datetime, name: str) -> datetime:
        """Add a part of the jitter to a scheduled time.

        The part is computed from a hash of `name` and `slot`, so that it is the same in every process.
        """
        if not self.jitter_seconds:
            return slot
        digest = hashlib.sha256(f"{name}\n{slot.astimezone(UTC).isoformat()}".encode()).digest()
        share = int.from_bytes(digest[:4], "big") / 2**32
        return slot + timedelta(seconds=round(share * self.jitter_seconds, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun:
    source: SourceId
    rule: str  # key of the schedule
    slot: datetime  # time by the rule
    next_at: datetime  # with jitter
    planned_at: datetime
    held_by: str | None = None  # worker that has reserved it
    run: RunId | None = None  # the last run started by the schedule
    outcome: str | None = None
    fired_at: datetime | None = None


def parse_schedule(text: str, zone: tzinfo = UTC, *, jitter_seconds: float = 0.0, budget: str = "500/h") -> Schedule:
    """Parse a schedule such as `0 3 * * *`, `@daily`, `every 6h` or `auto`."""
    words = " ".join(text.split())
    if words.lower() == "auto":
        limit = parse_budget(budget)
        return Schedule("auto", Interval(timedelta(seconds=limit.batch[1])), jitter_seconds, limit)
    if words.lower().startswith("every "):
        try:
            interval = read_duration(words[6:])
        except UsageError as wrong:
            raise CronError(str(wrong)) from None
        if interval < MIN_INTERVAL:
            raise CronError("the shortest interval is a minute")
        return Schedule(words.lower(), Interval(interval), jitter_seconds)
    cron = parse_cron(words, zone)
    if not cron.fires:
        raise CronError("its date does not exist in any year")
    return Schedule(cron.expression, cron, jitter_seconds)


def parse_budget(text: str) -> Budget:
    found = _BUDGET.fullmatch(text.strip())
    if found is None or int(found[1]) < 1:
        raise CronError(f"expected a number of checks per unit of time such as 500/h or 5000/d, got {text[:40]!r}")
    return Budget(int(found[1]), _UNITS[found[2].lower()])
