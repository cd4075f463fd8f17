"""How fresh pages are kept within a budget of looks, by several rules: `python -m bench.freshness`.

Pages change at random, each at a rate of its own; some changes are told by a noisy hint. Every rule has the
same looks to spend. Shown is the share of time that pages are fresh, after a warm-up for rules that learn.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.schedule.change_rate import DAY, NO_SIGNALS, ChangeRate, ChangeStats, CheckPlan, HintAccuracy, plan_checks

HOUR = 3_600.0
TICK = 600.0  # seconds from one run to the next
REPLAN = 24 * HOUR
MAX_INTERVAL_SECONDS = 30 * DAY
CERTAIN = 1e9  # the shape of a rate that is known
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mix:
    """Pages with their hosts and rates, the looks there are for them, and what hints are worth."""

    name: str
    rates: Callable[[np.random.Generator, int], Numbers]  # changes a day
    looks_a_day: float = 1.0  # for each page, on average
    hosts: int = 1
    recall: float = 0.0
    precision: float = 0.5


def _lognormal(middle: float, width: float) -> Callable[[np.random.Generator, int], Numbers]:
    return lambda random, number: middle * np.exp(random.normal(0.0, width, number))


def _two_kinds(random: np.random.Generator, number: int) -> Numbers:
    return np.where(random.random(number) < 0.8, 1 / 60, 6.0)


def _hosts(random: np.random.Generator, number: int) -> Numbers:
    middles = np.array([1 / 90, 1 / 14, 0.7, 8.0])
    return middles[np.arange(number) % 4] * np.exp(random.normal(0.0, 0.7, number))


MIXES = (
    Mix("documentation: months to days", _lognormal(1 / 20, 1.8)),
    Mix("the same, a tenth of the looks", _lognormal(1 / 20, 1.8), looks_a_day=0.1),
    Mix("two kinds: two months, four hours", _two_kinds),
    Mix("a long tail (Gamma 0.5, a day)", lambda random, number: random.gamma(0.5, 2.0, number)),
    Mix("four hosts, each of its own kind", _hosts, hosts=4),
    Mix("all alike, once a day", lambda random, number: np.full(number, 1.0)),
    Mix("documentation, good hints", _lognormal(1 / 20, 1.8), recall=0.8, precision=0.9),
    Mix("documentation, poor hints", _lognormal(1 / 20, 1.8), recall=0.5, precision=0.3),
    Mix("a long tail, good hints", lambda r, n: r.gamma(0.5, 2.0, n), recall=0.8, precision=0.9),
    Mix("a long tail, mostly noise", lambda r, n: r.gamma(0.5, 2.0, n), recall=0.3, precision=0.05),
)


@dataclass
class World:
    """Pages as they are, and what a rule sees of them."""

    rates: Numbers  # changes a second
    random: np.random.Generator
    mix: Mix
    stale: npt.NDArray[np.bool_] = field(init=False)
    hints: npt.NDArray[np.int64] = field(init=False)  # hints since the last look

    def __post_init__(self) -> None:
        self.stale = np.zeros(len(self.rates), dtype=bool)
        self.hints = np.zeros(len(self.rates), dtype=np.int64)
        self._ages = np.zeros(len(self.rates))
        self._fresh_part = -np.expm1(-self.rates * TICK) / (self.rates * TICK)

    def pass_tick(self) -> float:
        """Let pages change for a while; the share that is fresh meanwhile.

        Without hints it is the expected share, which is less at the mercy of chance.
        """
        sure = np.exp(-self.rates * self._ages) if not self.mix.recall else np.where(self.stale, 0.0, 1.0)
        fresh = float(np.mean(sure * self._fresh_part))
        self._ages += TICK
        changes = self.random.poisson(self.rates * TICK)
        self.stale |= changes > 0
        if self.mix.recall:
            false = self.rates * TICK * self.mix.recall * (1 / self.mix.precision - 1)
            self.hints += self.random.binomial(changes, self.mix.recall) + self.random.poisson(false)
        return fresh

    def look(self, pages: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Look at some pages; which of them had changed."""
        changed = self.stale[pages]
        self.stale[pages] = False
        self._ages[pages] = 0.0
        self.hints[pages] = 0
        return changed


class Rule(Protocol):
    """Decides which pages are looked at."""

    def urgency(self, now: float, hints: npt.NDArray[np.int64]) -> Numbers:
        """For each page how long it has been due, in any unit; not due: below nought."""
        ...

    def saw(self, now: float, pages: npt.NDArray[np.int64], changed: npt.NDArray[np.bool_]) -> None:
        """Hear what looks showed."""
        ...


class Timed:
    """A rule by which each page waits for a time of its own; the longest due come first."""

    def __init__(self, number: int, first: float) -> None:
        self.next_at = np.linspace(0.0, first, number, endpoint=False)

    def urgency(self, now: float, hints: npt.NDArray[np.int64]) -> Numbers:
        """By the time that each page waited for."""
        return now - self.next_at


class Fixed(Timed):
    """Every page after an interval that never changes."""

    def __init__(self, intervals: Numbers, first: float) -> None:
        super().__init__(len(intervals), first)
        self._intervals = intervals

    def saw(self, now: float, pages: npt.NDArray[np.int64], changed: npt.NDArray[np.bool_]) -> None:
        """Wait for the interval again."""
        self.next_at[pages] = now + self._intervals[pages]


class Stepwise(Timed):
    """As crawlers in the manner of Nutch do: half the interval after a change, half as much more without."""

    def __init__(self, number: int, first: float) -> None:
        super().__init__(number, first)
        self._intervals = np.full(number, first)

    def saw(self, now: float, pages: npt.NDArray[np.int64], changed: npt.NDArray[np.bool_]) -> None:
        """Make the interval shorter or longer."""
        steps = self._intervals[pages] * np.where(changed, 0.5, 1.5)
        self._intervals[pages] = np.clip(steps, TICK, MAX_INTERVAL_SECONDS)
        self.next_at[pages] = now + self._intervals[pages]


class Signalled:
    """A rule by which pages are due at an age to which hints add."""

    def __init__(self, number: int, first: float) -> None:
        self.looked = np.linspace(-first, 0.0, number, endpoint=False)
        self.ages = np.full(number, first)  # at which each page is due
        self.ageing = np.zeros(number)  # seconds that a hint is worth
        self.silent = 1.0  # share of changes that no hint tells

    def urgency(self, now: float, hints: npt.NDArray[np.int64]) -> Numbers:
        """By the time since a page reached its age."""
        reached: Numbers = (now - self.looked) * self.silent + hints * self.ageing
        past: Numbers = reached - self.ages
        return past


class Optimum(Signalled):
    """Knows the true rates and what hints are worth."""

    def __init__(self, rates: Numbers, looks: float, signals: HintAccuracy, first: float) -> None:
        super().__init__(len(rates), first)
        known = [ChangeRate(CERTAIN, CERTAIN / rate) for rate in rates]
        low, high = -7.0, 25.0
        for _ in range(50):
            price = np.exp((low + high) / 2)
            ages = [rate.interval(float(price), 1.0, 1e4 * DAY) for rate in known]
            cost = sum(signals.looks(rate, age) for rate, age in zip(known, ages, strict=True))
            low, high = ((low + high) / 2, high) if cost > looks else (low, (low + high) / 2)
        self.ages = np.array(ages)
        self.ageing = np.array([signals.ageing(rate) for rate in known]) if signals.recall else self.ageing
        self.silent = 1 - signals.recall

    def saw(self, now: float, pages: npt.NDArray[np.int64], changed: npt.NDArray[np.bool_]) -> None:
        """Note the looks."""
        self.looked[pages] = now


class Ours(Signalled):
    """As `schedule: auto` does: nothing is known beforehand, neither of pages nor of hints."""

    def __init__(self, hosts: Sequence[str], looks: float, first: float) -> None:
        super().__init__(len(hosts), first)
        self._hosts = hosts
        self._looks = looks
        self._rhythms = [ChangeStats()] * len(hosts)
        self._plan: CheckPlan | None = None
        self._planned = 0.0
        self._hints = self._hinted_changes = self._looked = self._changes = 0
        self._signals_seen: npt.NDArray[np.int64] = np.zeros(len(hosts), dtype=np.int64)

    def urgency(self, now: float, hints: npt.NDArray[np.int64]) -> Numbers:
        """By the time since a page reached its age, which is reckoned anew now and then."""
        self._signals_seen = hints.copy()
        if self._plan is None or now - self._planned >= REPLAN:
            self._replan(now)
        return super().urgency(now, hints)

    def _replan(self, now: float) -> None:
        signals = (
            HintAccuracy.of(self._hints, self._hinted_changes, self._looked, self._changes)
            if self._hints
            else NO_SIGNALS
        )
        pages = zip(self._hosts, self._rhythms, strict=True)
        self._plan = plan_checks(
            pages, self._looks, min_seconds=TICK, max_seconds=MAX_INTERVAL_SECONDS, signals=signals
        )
        self._planned, self.silent = now, 1 - signals.recall

    def saw(self, now: float, pages: npt.NDArray[np.int64], changed: npt.NDArray[np.bool_]) -> None:
        """Learn from the looks."""
        assert self._plan is not None
        for page, is_changed in zip(pages.tolist(), changed.tolist(), strict=True):
            self._rhythms[page] = self._rhythms[page].seen(is_changed, now - self.looked[page])
            rate = self._plan.rate(self._hosts[page], self._rhythms[page])
            self.ages[page] = rate.interval(self._plan.price, TICK, MAX_INTERVAL_SECONDS)
            self.ageing[page] = self._plan.signals.ageing(rate) if self._plan.signals.recall else 0.0
        self.looked[pages] = now
        hinted = self._signals_seen[pages] > 0
        self._looked += len(pages)
        self._hints += int(hinted.sum())
        self._hinted_changes += int((hinted & changed).sum())
        self._changes += int(changed.sum())


RULES = ("uniform", "proportional", "Nutch", "ours", "optimum")


def fresh_share(mix: Mix, rule_name: str, *, pages: int, warm_up: float, measured: float, seed: int) -> float:
    """The share of time that pages are fresh by one rule, after a warm-up; times in days."""
    random = np.random.default_rng(seed)
    rates = np.maximum(mix.rates(random, pages), 1e-5) / DAY
    looks = pages * mix.looks_a_day / DAY  # a second
    world, rule = World(rates, np.random.default_rng(seed + 1), mix), _rule(rule_name, mix, rates, looks)
    shares, saved = [], 0.0
    for tick in range(int((warm_up + measured) * DAY / TICK)):
        saved += looks * TICK
        urgency = rule.urgency(tick * TICK, world.hints)
        due = np.flatnonzero(urgency >= 0)
        if len(due) > saved:
            due = due[np.argsort(-urgency[due], kind="stable")[: int(saved)]]
        saved = min(saved - len(due), 2 * looks * TICK + 1)
        if len(due):
            rule.saw(tick * TICK, due, world.look(due))
        share = world.pass_tick()
        if tick * TICK >= warm_up * DAY:
            shares.append(share)
    return float(np.mean(shares))


def _rule(name: str, mix: Mix, rates: Numbers, looks: float) -> Rule:
    first = len(rates) / looks
    match name:
        case "uniform":
            return Fixed(np.full(len(rates), first), first)
        case "proportional":
            return Fixed(rates.sum() / (rates * looks), first)
        case "Nutch":
            return Stepwise(len(rates), first)
        case "ours":
            return Ours([f"h{page % mix.hosts}" for page in range(len(rates))], looks, first)
    signals = HintAccuracy(mix.recall, mix.precision) if mix.recall else NO_SIGNALS
    return Optimum(rates, looks, signals, first)


def table(mixes: Sequence[Mix], *, pages: int, warm_up: float, measured: float, seed: int) -> list[str]:
    """The shares by mix and rule, as Markdown."""
    lines = [f"| pages | {' | '.join(RULES)} | ours / optimum |", f"|---|{'---|' * (len(RULES) + 1)}"]
    for mix in mixes:
        found = {
            rule: fresh_share(mix, rule, pages=pages, warm_up=warm_up, measured=measured, seed=seed) for rule in RULES
        }
        shares = " | ".join(f"{found[rule]:.3f}" for rule in RULES)
        lines.append(f"| {mix.name} | {shares} | {found['ours'] / found['optimum']:.3f} |")
        sys.stderr.write(lines[-1] + "\n")
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--warm-up", type=float, default=30.0, help="days")
    parser.add_argument("--measured", type=float, default=20.0, help="days")
    parser.add_argument("--seed", type=int, default=20_260_101)
    given = parser.parse_args()
    lines = table(MIXES, pages=given.pages, warm_up=given.warm_up, measured=given.measured, seed=given.seed)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
