"""Draw bar charts and calendars as SVG, styled by the classes in charts.css."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from math import log1p

from markupsafe import Markup, escape

from afresh.model.charts import Calendar, UpcomingChecks
from afresh.model.reports import RunReport
from afresh.present.wording import count

CELL = 13  # size of a day of the calendar, with its gap
LEFT, TOP = 30, 18  # space for the names of days and months
LEVELS = 4
KINDS = ("new", "changed", "moved", "deleted")
FOUND = (  # results of runs, bottom first: class, words, and the counts that are summed up
    ("new", "new", ("new",)),
    ("changed", "changed", ("changed",)),
    ("deleted", "deleted or moved", ("deleted", "moved")),
    ("failed", "failed, skipped or doubtful", ("failed", "refused", "doubtful")),
)
HEIGHT = 120  # of a chart


def svg(width: float, height: float, label: str, body: Iterable[str], kind: str) -> Markup:
    name = escape(label)
    stretched = ' preserveAspectRatio="none"' if kind == "sparkline" else ""
    return Markup(  # noqa: S704 - made of numbers and what is escaped just here
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}"{stretched} role="img" aria-label="{name}">'
        f"<title>{name}</title>{''.join(body)}</svg>"
    )


def rect(x: float, y: float, width: float, height: float, kind: str, title: str | None = None) -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" {box} rx="1.5">{inside}</rect>'


def text(x: float, y: float, words: str, kind: str = "t") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


def sparkline(numbers: Sequence[int]) -> Markup:
    """Return a bar chart of the changes on each of the last days, scaled by logarithm so that peaks hide no day."""
    most, total = max(numbers, default=0), sum(numbers)
    label = f"{count(total, 'change') if most else 'No change'} in the last {len(numbers)} days"
    bars = []
    for place, number in enumerate(numbers):
        tall = 22 * log1p(number) / log1p(most) if number else 0.0
        bars.append(rect(place * 10, 24 - max(tall, 1.5), 8, max(tall, 1.5), "on" if number else "off"))
    return svg(len(numbers) * 10 - 2, 24, label, bars, "sparkline")


def calendar(days: Calendar) -> Markup:
    by_day = {day.day: day for day in days.days}
    most = max((day.changes for day in days.days), default=0)
    first = days.since - timedelta(days=days.since.weekday())
    weeks = ((days.through - first).days // 7) + 1
    body = [text(0, TOP + CELL * row + 10, name) for row, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"))]
    body += [text(LEFT + CELL * week, 11, name) for week, name in _months(first, weeks)]
    for place in range((days.through - days.since).days + 1):
        day = days.since + timedelta(days=place)
        week, row = divmod((day - first).days, 7)
        kinds = by_day[day].kinds if day in by_day else {}
        number = by_day[day].changes if day in by_day else 0
        level = max(1, min(LEVELS, round(LEVELS * log1p(number) / log1p(most)))) if number else 0
        changes = ", ".join(f"{count(number)} {kind}" for kind, number in kinds.items())
        title = f"{day:%d %B %Y}: {changes or 'no changes'}"
        body.append(rect(LEFT + CELL * week, TOP + CELL * row, 11, 11, f"l{level}", title))
    label = f"{count(days.changes, 'change')} from {days.since:%d %B %Y} to {days.through:%d %B %Y}, by day"
    return svg(LEFT + CELL * weeks, TOP + CELL * 7, label, body, "calendar")


def _months(first: date, weeks: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for week in range(weeks):
        sunday = first + timedelta(days=7 * week + 6)
        starts_month = sunday.day <= 7  # the first of a month is in this week
        if starts_month and (not found or week - found[-1][0] > 2) and week < weeks - 1:
            found.append((week, f"{sunday:%b}"))
    return found


def months(days: Calendar) -> list[tuple[str, Mapping[str, int], int]]:
    """Return the calendar as a table: month, changes by kind and their sum, latest month first."""
    found: dict[str, dict[str, int]] = {}
    for each in days.days:
        kinds = found.setdefault(f"{each.day:%Y-%m}", dict.fromkeys(KINDS, 0))
        for kind, number in each.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + number
    named = ((date.fromisoformat(f"{month}-01"), kinds) for month, kinds in sorted(found.items(), reverse=True))
    return [(f"{first:%B %Y}", kinds, sum(kinds.values())) for first, kinds in named]


def runs(reports: Sequence[RunReport]) -> Markup:
    parts = [[sum(int(getattr(report, name)) for name in names) for _, _, names in FOUND] for report in reports]
    most = max(map(sum, parts), default=0)
    wide = 600 / max(len(reports), 12)
    body = _lines(600, most)
    for place, (report, numbers) in enumerate(zip(reports, parts, strict=True)):
        base = HEIGHT + 8.0
        for (kind, name, _), number in zip(FOUND, numbers, strict=True):
            tall = HEIGHT * number / most if most else 0
            base -= tall
            if number:
                words = f"Run {report.run}: {count(number)} {name} of {count(report.checked)} checked"
                body.append(rect(36 + place * wide, base, wide * 0.8, max(tall, 1.5), kind, words))
        if not sum(numbers):
            words = f"Run {report.run}: no changes in {count(report.checked)} checked"
            body.append(rect(36 + place * wide, HEIGHT + 6, wide * 0.8, 2, "none", words))
    label = f"New, changed, deleted and failed pages of the last {count(len(reports), 'run')}"
    return svg(640, HEIGHT + 16, label, body, "chart")


def paces(reports: Sequence[RunReport]) -> Markup:
    numbers = [pace(report) for report in reports]
    words = [f"Run {r.run}: {count(n, 'page')} per minute" for r, n in zip(reports, numbers, strict=True)]
    return _bars(numbers, words, f"Pages checked per minute in the last {count(len(reports), 'run')}", "pace")


def pace(report: RunReport) -> int:
    return round(60 * report.checked / report.seconds) if report.seconds else 0


def ahead(checks: UpcomingChecks) -> Markup:
    """Return a bar chart of the checks in each of the next hours; the first bar shows the due pages."""
    numbers = [checks.due, *checks.hours]
    when = ["Due now", "This hour", *(f"In {count(place, 'hour')}" for place in range(1, len(checks.hours)))]
    words = [f"{name}: {count(number)}" for name, number in zip(when, numbers, strict=False)]
    soon = f"{count(sum(checks.hours))} in the next {len(checks.hours)} hours"
    label = f"{count(checks.due)} due now, {soon}, {count(checks.later)} later"
    wide = 600 / len(numbers)
    marks = [(place, f"{place} h") for place in range(12, len(numbers) - 1, 12)]
    # the first bar is the one of due pages
    under = [text(36 + wide * (place + 1.4), HEIGHT + 20, name, "t mid") for place, name in marks]
    under.append(text(36, HEIGHT + 20, "due"))
    return _bars(numbers, words, label, "ahead", under)


def _bars(numbers: Sequence[int], words: Sequence[str], label: str, kind: str, under: Sequence[str] = ()) -> Markup:
    most, wide = max(numbers, default=0), 600 / max(len(numbers), 12)
    body = _lines(600, most)
    for place, (number, title) in enumerate(zip(numbers, words, strict=True)):
        tall = max(HEIGHT * number / most, 1.5) if number else 0.0
        style = f"{kind} first" if under and place == 0 else kind
        body.append(rect(36 + place * wide, HEIGHT + 8 - tall, wide * 0.8, tall, style, title))
    return svg(640, HEIGHT + (26 if under else 16), label, [*body, *under], "chart")


def _lines(width: float, most: int) -> list[str]:
    marks = [(HEIGHT + 8.0, "0"), (8.0, _short(most))] if most else [(HEIGHT + 8.0, "0")]
    drawn = [f'<line class="axis" x1="36" y1="{y:g}" x2="{36 + width:g}" y2="{y:g}"/>' for y, _ in marks]
    return drawn + [text(32, y + 3, words, "t end") for y, words in marks]


def _short(number: int) -> str:
    for size, sign in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= 0.9995 * size:  # a smaller number would be written as 1,000 of the smaller unit
            return f"{number / size:.3g}{sign}"
    return str(number)


DRAWINGS = {
    "sparkline": sparkline,
    "draw_calendar": calendar,
    "draw_runs": runs,
    "draw_paces": paces,
    "draw_ahead": ahead,
    "kinds_found": FOUND,
    "months": months,
    "pace": pace,
}
