"""Cron expressions: five fields or an alias, in a time zone.

`*`, lists, ranges, steps, names of months and days, and 0 or 7 for Sunday have the meaning of crontab. If
both day fields are restricted, a day has to match only one of them. A time that the clocks skip in spring is
moved to the end of the gap. A time that occurs twice in autumn is used once, the first time. A date that does
not exist (30 February) is valid and has no next time.
"""

from datetime import UTC, datetime, tzinfo

from afresh.dataclass import dataclass

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
    """The text is not a cron expression; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid cron expression in a time zone."""

    expression: str
    zone: tzinfo = UTC
    fires: bool = True  # False for dates that do not exist

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment, in UTC; None if there is none."""
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
