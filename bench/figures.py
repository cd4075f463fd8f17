"""From rounds to figures: medians, ratios to the bare loop, and whether the goals are met."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypedDict

from bench.measure import Cost
from bench.rounds import Round, Step
from bench.startup import StartUp

PHASES = {"crawl": "first crawl + index", "refresh": "refresh, nothing changed", "mix": "refresh, typical mix"}
RATIO_GOALS = {"crawl": 40.0, "refresh": 3.0, "mix": 10.0}
MEMORY_GOAL_MB, START_GOAL_S, SEARCH_GOAL_S = 300.0, 0.4, 0.5


@dataclass(frozen=True)
class Row:
    """One line of the table; a figure that was not taken is None."""

    system: str
    phase: str
    corpus: str
    pages: int | None = None
    pages_per_s: float | None = None
    wall_s: float | None = None  # of the whole command
    wall_min_s: float | None = None
    wall_max_s: float | None = None
    ratio: float | None = None
    ratio_goal: float | None = None
    cpu_s: float | None = None
    rss_mb: float | None = None
    pss_mb: float | None = None
    ratios: dict[str, float] | None = None  # by what is counted as the run's time


@dataclass(frozen=True)
class Goal:
    """One goal and how near we are."""

    what: str
    corpus: str
    limit: float
    value: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the figure is within the goal."""
        return self.value <= self.limit


def start_of(step: Step, first: Step) -> float:
    """Seconds until a run begins its work, of which no part grows with the site.

    The first crawl shows it: from the start of the process to its first request. A refresh also queues the
    pages it knows before it asks for the first one, and that is work; so the smaller figure counts.
    """
    known = [each.first_request_s for each in (step, first) if each.first_request_s is not None]
    return min(known, default=0.0)


def ratios(played: Round, phase: str, start_up: StartUp) -> dict[str, float]:
    """Time per page against the bare loop of the same round, by what is counted as the run's time."""
    step = played.steps[phase]
    per_page = played.loop.per_page(conditional=phase != "crawl") * step.pages
    wall = step.cost.wall_s
    return {
        "after_start": (wall - start_of(step, played.steps["crawl"])) / per_page,
        "whole_command": wall / per_page,
        "minus_idle_refresh": (wall - start_up.idle_refresh_s) / per_page,
        "own_report": (step.report_s or wall) / per_page,
    }


def rows(rounds: Sequence[Round], start_up: StartUp) -> list[Row]:
    """The lines of one corpus: the bare loop, then afresh."""
    own = [_phase_row(rounds, phase, start_up) for phase in PHASES]
    return [_loop_row(rounds, conditional=each) for each in (False, True)] + own + [_search_row(rounds)]


def _loop_row(rounds: Sequence[Round], *, conditional: bool) -> Row:
    passes = [each for played in rounds for each in played.loop.passes(conditional=conditional)]
    walls = [each.wall_s for each in passes]
    pages = rounds[0].loop.pages
    return Row(
        system="aiohttp, 32 at once",
        phase="conditional GET" if conditional else "GET",
        corpus=rounds[0].corpus,
        pages=pages,
        pages_per_s=pages / median(walls),
        wall_s=median(walls),
        wall_min_s=min(walls),
        wall_max_s=max(walls),
        ratio=1.0,
        cpu_s=median(each.cpu_s for each in passes),
        rss_mb=max(each.loop.rss_mb for each in rounds),
    )


def _phase_row(rounds: Sequence[Round], phase: str, start_up: StartUp) -> Row:
    steps = [each.steps[phase] for each in rounds]
    working = [step.cost.wall_s - start_of(step, each.steps["crawl"]) for step, each in zip(steps, rounds, strict=True)]
    by_kind = [ratios(each, phase, start_up) for each in rounds]
    middle = {kind: median(each[kind] for each in by_kind) for kind in by_kind[0]}
    return Row(
        system="afresh",
        phase=PHASES[phase],
        corpus=rounds[0].corpus,
        pages=steps[0].pages,
        pages_per_s=steps[0].pages / median(working),
        ratio=middle["after_start"],
        ratio_goal=RATIO_GOALS[phase],
        ratios=middle,
        **_spent([step.cost for step in steps]),
    )


def _search_row(rounds: Sequence[Round]) -> Row:
    costs = [cost for each in rounds for cost in each.searches]
    return Row(system="afresh", phase="one search, command line", corpus=rounds[0].corpus, **_spent(costs))


class Spent(TypedDict):
    """The columns of a row that tell what commands cost."""

    wall_s: float
    wall_min_s: float
    wall_max_s: float
    cpu_s: float
    rss_mb: float
    pss_mb: float | None


def _spent(costs: Sequence[Cost]) -> Spent:
    walls = [cost.wall_s for cost in costs]
    return Spent(
        wall_s=median(walls),
        wall_min_s=min(walls),
        wall_max_s=max(walls),
        cpu_s=median(cost.cpu_s for cost in costs),
        rss_mb=max(cost.rss_mb for cost in costs),
        pss_mb=max((cost.pss_mb for cost in costs if cost.pss_mb is not None), default=None),
    )


def first_request(rounds: Sequence[Round]) -> float:
    """Median seconds from the start of a first crawl to its first request."""
    return median(each.steps["crawl"].first_request_s or 0.0 for each in rounds)


def goals(rounds: Sequence[Round], start_up: StartUp) -> list[Goal]:
    """The goals for one corpus, with what was measured."""
    corpus = rounds[0].corpus
    table = {row.phase: row for row in rows(rounds, start_up) if row.system == "afresh"}
    found = [
        Goal(f"{PHASES[phase]}: time per page", corpus, limit, table[PHASES[phase]].ratio or 0.0, "×")
        for phase, limit in RATIO_GOALS.items()
    ]
    peak = max(row.rss_mb or 0.0 for row in table.values())
    search = table["one search, command line"].wall_s or 0.0
    return [
        *found,
        Goal("peak memory of all processes", corpus, MEMORY_GOAL_MB, peak, "MB"),
        Goal("start-up of a run, to its first request", corpus, START_GOAL_S, first_request(rounds), "s"),
        Goal("one search from the command line", corpus, SEARCH_GOAL_S, search, "s"),
    ]
