"""Decide how often to check each page: estimate its change rate from few checks, and keep within a budget.

The worth of a check is the time for which it keeps the stored copy of a page up to date (Cho and Garcia-Molina 2003;
Azar et al. 2018). It grows with the time since the last check. A page is checked when its check is worth a certain
price. The price is the same for all pages, and is chosen so that the checks fit the budget. A page that changes all
the time is checked rarely, because its copy would be outdated again at once.

The change rate of a page is not known exactly, so it is described by a Gamma distribution. Before the first check,
this is the distribution of all pages of the host. The worth of a check is therefore an expected value.

Change signals of a site, such as dates in its sitemap, are not reliable, so a signal does not make a page due at once.
Instead, each signal adds some seconds to the age of the page (the time since its last check), and time without a
signal counts less (Kolobov et al. 2019; Busa-Fekete et al. 2025).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import exp, expm1, lgamma, log, log1p

from afresh.dataclass import dataclass

DAY = 86_400.0
FEW = 5.0  # the prior of a host has the weight of this many pages
ROUNDS = 3  # iterations to learn the rate of a host
MANY = 150  # number of distinct statistics that is enough to learn the rate of a host
FEW_KINDS = 50  # distinct statistics up to which the cost is exact
STEPS = 24  # iterations of a bisection
SHAPES = (0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 12.0, 40.0, 150.0)  # how similar pages of a host may be
STEP = 0.1  # resolution of rounding, in logarithms
MOST = 0.6  # upper bound of the recall of signals: a page without a signal may still have changed
SURE = 0.98  # bounds of the precision of signals: SURE and 1 - SURE


@dataclass(frozen=True, slots=True)
class ChangeStats:
    """How often a page changes: how many checks found a change, and the time before checks that found none or one."""

    changes: int = 0
    quiet: float = 0.0  # total seconds before checks that found no change, each since the previous check
    spans: float = 0.0  # total seconds before checks that found a change

    def seen(self, changed: bool, seconds: float) -> "ChangeStats":
        if seconds <= 0:
            return self
        if changed:
            return ChangeStats(self.changes + 1, self.quiet, self.spans + seconds)
        return ChangeStats(self.changes, self.quiet + seconds, self.spans)

    @property
    def rounded(self) -> "ChangeStats":
        """Return these numbers rounded to a few percent, so that similar pages share one computation."""
        number = self.changes if self.changes < 20 else round(_rounded(self.changes))
        each = _rounded(self.spans / self.changes) if self.changes else 0.0
        return ChangeStats(number, _rounded(self.quiet), each * number)


@dataclass(frozen=True, slots=True)
class ChangeRate:
    """A Gamma distribution of the changes per second of a page, or of the pages of a host."""

    shape: float
    seconds: float

    @property
    def mean(self) -> float:
        return self.shape / self.seconds

    def worth(self, interval: float) -> float:
        """Return the seconds of freshness that one more check adds if a page is checked at this interval."""
        share = interval / self.seconds
        grown, left = log1p(share), share * exp(-self.shape * log1p(share))
        less = self.shape - 1
        since = grown if abs(less) < 1e-9 else -expm1(-less * grown) / less
        return self.seconds * (since - left)

    def interval(self, price: float, min_seconds: float, max_seconds: float) -> float:
        """Return the interval, within the limits, at which one more check adds `price` seconds of freshness."""
        if self.worth(max_seconds) <= price:
            return max_seconds
        if self.worth(min_seconds) >= price:
            return min_seconds
        low, high = log(min_seconds), log(max_seconds)
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.worth(exp(middle)) >= price else (middle, high)
        return exp(high)


UNKNOWN = ChangeRate(0.5, 30 * DAY)  # prior: months for many pages, hours for some


def learned(rhythm: ChangeStats, prior: ChangeRate) -> ChangeRate:
    """Return the change rate of a page: the rate `prior` of its host, updated with the statistics of the page."""
    number, span = rhythm.changes, rhythm.spans / rhythm.changes if rhythm.changes else 0.0
    seconds = prior.seconds + rhythm.quiet
    if not number or span <= 0:
        return ChangeRate(prior.shape, seconds)
    low, high = log(prior.shape / seconds), log((prior.shape + number) / seconds)
    for _ in range(STEPS):
        middle = (low + high) / 2
        rate = exp(middle)
        short = prior.shape + number * _weight(rate * span) > rate * seconds
        low, high = (middle, high) if short else (low, middle)
    rate = exp((low + high) / 2)
    shape = rate * seconds + number * _weight_slope(rate * span)
    return ChangeRate(shape, shape / rate)


def host_rate(pages: Mapping[ChangeStats, int], prior: ChangeRate = UNKNOWN) -> ChangeRate:
    """Estimate the change rate of the pages of a host, given the number of pages with each `ChangeStats`.

    If few pages were checked, the estimate stays close to `prior`.
    """
    seen = {each: number for each, number in pages.items() if each.changes or each.quiet}
    if (step := len(seen) // MANY + 1) > 1:  # a sample saves time
        ordered = sorted(seen.items(), key=lambda pair: (pair[0].changes, pair[0].quiet, pair[0].spans))
        seen = dict(ordered[::step])
    total, mean = sum(seen.values()), prior.mean
    if not total:
        return prior
    fits: list[tuple[float, ChangeRate]] = []
    for shape in SHAPES:
        for _ in range(ROUNDS):
            rate = ChangeRate(shape, shape / mean)
            rates = sum(learned(each, rate).mean * number for each, number in seen.items())
            mean = (FEW * prior.mean + rates) / (FEW + total)
        rate = ChangeRate(shape, shape / mean)
        fit = sum(_fit(each, rate) * number for each, number in seen.items())
        fits.append((fit - log(shape / prior.shape) ** 2 / 2, rate))
    return max(fits, key=lambda pair: pair[0])[1]


@dataclass(frozen=True, slots=True)
class HintAccuracy:
    """How reliable the change signals of a site are, such as dates in its sitemap."""

    recall: float = 0.0  # share of changes that had a signal
    precision: float = 0.5  # share of signals that came with a change

    @classmethod
    def of(cls, hinted: int, hinted_changes: int, looks: int, changes: int) -> "HintAccuracy":
        """Estimate the accuracy from numbers of checks.

        `hinted` counts checks after a signal, `hinted_changes` those of them that found a change, `looks` all checks,
        and `changes` all that found a change. Signals that coincide with changes by chance are subtracted.
        """
        by_chance = (hinted - hinted_changes + 1) / (looks - changes + 2)
        with_change = hinted_changes / (changes + 4)
        recall = (with_change - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
        quiet_hinted = (hinted - hinted_changes + 3) / (hinted + 4)
        quiet_unhinted = (looks - hinted - (changes - hinted_changes) + 3) / (looks - hinted + 4)
        precision = 1 - quiet_hinted / quiet_unhinted
        return cls(min(MOST, max(0.0, recall)), min(SURE, max(1 - SURE, precision)))

    def ageing(self, rate: ChangeRate) -> float:
        """Return the seconds that one change signal adds to the age of a page."""
        return -log1p(-self.precision) / rate.mean

    def looks(self, rate: ChangeRate, age: float) -> float:
        """Return the expected checks per second of a page that is checked whenever its age reaches `age` seconds."""
        silent = 1 - self.recall
        signals = self.recall * rate.mean / self.precision  # per second
        if signals <= 0:
            return 1 / age
        ageing = self.ageing(rate)
        if ageing < age:
            return (silent + signals * ageing) / age
        return signals / -expm1(-signals * age / silent)


NO_SIGNALS = HintAccuracy()


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """Decides when to check each page, from the change rate of the page."""

    hosts: Mapping[str, ChangeRate]
    price: float  # seconds of freshness that a check has to add
    min_seconds: float = 300.0
    max_seconds: float = 30 * DAY
    signals: HintAccuracy = NO_SIGNALS
    usual: ChangeRate = UNKNOWN  # for a host without pages

    def rate(self, host: str, rhythm: ChangeStats) -> ChangeRate:
        return learned(rhythm, self.hosts.get(host, self.usual))

    def wait(self, host: str, rhythm: ChangeStats) -> float:
        """Return the seconds until the next check of a page if no change signal arrives."""
        age = self.rate(host, rhythm).interval(self.price, self.min_seconds, self.max_seconds)
        return min(self.max_seconds, age / (1 - self.signals.recall))

    def is_due(self, host: str, rhythm: ChangeStats, seconds: float, hinted: int = 0) -> bool:
        """Return whether a page is due if its last check was `seconds` ago, with `hinted` change signals since."""
        rate = self.rate(host, rhythm)
        age = seconds * (1 - self.signals.recall) + hinted * self.signals.ageing(rate)
        return seconds >= self.max_seconds or age >= rate.interval(self.price, self.min_seconds, self.max_seconds)


def plan_checks(
    pages: Iterable[tuple[str, ChangeStats]],
    looks: float,
    *,
    min_seconds: float = 300.0,
    max_seconds: float = 30 * DAY,
    signals: HintAccuracy = NO_SIGNALS,
) -> CheckPlan:
    """Return a plan for `pages` (host, statistics): `looks` checks per second, or more if `max_seconds` requires it."""
    counted = Counter(pages)
    exact = len(counted) <= FEW_KINDS  # rounding saves time, but misses a small budget by more than a quarter
    if not exact:
        rounded: Counter[tuple[str, ChangeStats]] = Counter()
        for (host, rhythm), number in counted.items():
            rounded[host, rhythm.rounded] += number
        counted = rounded
    everywhere: Counter[ChangeStats] = Counter()
    by_host: dict[str, Counter[ChangeStats]] = {}
    for (host, rhythm), number in counted.items():
        everywhere[rhythm] += number
        by_host.setdefault(host, Counter())[rhythm] += number
    usual = host_rate(everywhere)
    alone = len(by_host) == 1
    hosts = {host: usual if alone else host_rate(found, usual) for host, found in by_host.items()}
    rates = [(learned(rhythm, hosts[host]), number) for (host, rhythm), number in counted.items()]
    if not exact:  # merge pages that differ by a few percent
        alike: Counter[ChangeRate] = Counter()
        for rate, number in rates:
            shape = _rounded(rate.shape)
            alike[ChangeRate(shape, shape / _rounded(rate.mean))] += number
        rates = list(alike.items())

    def cost(price: float) -> float:
        ages = ((rate, number, rate.interval(price, min_seconds, max_seconds)) for rate, number in rates)
        return sum(number * max(1 / max_seconds, signals.looks(rate, age)) for rate, number, age in ages)

    low, high = log(1e-12), log(1e10)  # bisect: the cost falls with the price
    for _ in range(STEPS + 8):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(exp(middle)) > looks else (low, middle)
    return CheckPlan(hosts, exp(high), min_seconds, max_seconds, signals, usual)


def _weight(expected: float) -> float:
    """Return the weight of an observed change in the estimate: 1 if no change was expected, near 0 if many were."""
    return 1.0 if expected < 1e-6 else expected / expm1(expected) if expected < 500 else 0.0


def _weight_slope(expected: float) -> float:
    """Return how fast `_weight` falls with the logarithm of `expected` (its negative derivative)."""
    if expected < 1e-4:
        return expected / 2
    if expected > 300:
        return 0.0
    return expected * (1 + (expected - 1) * exp(expected)) / expm1(expected) ** 2


def _fit(rhythm: ChangeStats, prior: ChangeRate) -> float:
    """Return the log-likelihood of the observations of a page, given the change rate of its host."""
    after = learned(rhythm, prior)
    rate, shape = after.mean, after.shape
    seen = -rate * rhythm.quiet
    if rhythm.changes:
        seen += rhythm.changes * log(-expm1(-max(1e-12, rate * rhythm.spans / rhythm.changes)))
    before = prior.shape * log(prior.seconds * rate) - lgamma(prior.shape) - prior.seconds * rate
    return seen + before + lgamma(shape) + shape - shape * log(shape)


def _rounded(value: float) -> float:
    return exp(round(log(value) / STEP) * STEP) if value > 0 else 0.0
