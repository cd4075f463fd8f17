"""How often a page is worth a look: its rate of change, learned from few looks, under a budget.

A page that changes at random, at a rate, and is looked at every so often is fresh for a share of the time.
Looks are worth most where one more adds most to that share (Cho and Garcia-Molina 2003; Azar et al. 2018):
there is one price of a look, and every page waits until its next look is worth the price. Pages that change
all the time are looked at seldom: they would be stale again at once. The rate is not known, so it is a Gamma
distribution, to begin with what pages of its host are like, and the worth of a look is the expected one: a
page of which little is known is looked at for what it may be. What a site says of its pages is a noisy signal
that makes a page older than it is (Kolobov et al. 2019; Busa-Fekete et al. 2025).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp, expm1, lgamma, log, log1p

DAY = 86_400.0
FEW = 5.0  # pages whose looks weigh as much as what is believed of a host beforehand
ROUNDS = 3  # of learning what a host is like
MANY = 150  # kinds of pages that are enough to learn from
FEW_KINDS = 50  # kinds of pages whose cost is counted exactly
STEPS = 24  # of halving
SHAPES = (0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 12.0, 40.0, 150.0)  # how alike pages of a host may be
STEP = 0.1  # how far apart pages are, as logarithms, that are reckoned one by one
MOST = 0.6  # no site is believed to tell of more changes: silence proves little
SURE = 0.98  # no signal is believed more than this, or disbelieved more


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What looks showed of a page: how often it had changed since the one before, and how long that was."""

    changes: int = 0
    quiet: float = 0.0  # seconds between looks that showed no change
    spans: float = 0.0  # seconds between looks that did

    def seen(self, changed: bool, seconds: float) -> "Rhythm":
        """With one more look, so many seconds after the last."""
        if seconds <= 0:
            return self
        if changed:
            return Rhythm(self.changes + 1, self.quiet, self.spans + seconds)
        return Rhythm(self.changes, self.quiet + seconds, self.spans)

    @property
    def rounded(self) -> "Rhythm":
        """The same to a few percent, so that like pages are reckoned once."""
        number = self.changes if self.changes < 20 else round(_rounded(self.changes))
        each = _rounded(self.spans / self.changes) if self.changes else 0.0
        return Rhythm(number, _rounded(self.quiet), each * number)


@dataclass(frozen=True, slots=True)
class Rate:
    """What is believed of a rate of change: a Gamma distribution, in changes a second."""

    shape: float
    seconds: float

    @property
    def mean(self) -> float:
        """The rate to be expected."""
        return self.shape / self.seconds

    def worth(self, interval: float) -> float:
        """What one more look adds, in seconds of freshness, where looks are an interval apart."""
        share = interval / self.seconds
        grown, left = log1p(share), share * exp(-self.shape * log1p(share))
        less = self.shape - 1
        since = grown if abs(less) < 1e-9 else -expm1(-less * grown) / less
        return self.seconds * (since - left)

    def interval(self, price: float, shortest: float, longest: float) -> float:
        """How long a page is to wait until its look is worth the price."""
        if self.worth(longest) <= price:
            return longest
        if self.worth(shortest) >= price:
            return shortest
        low, high = log(shortest), log(longest)
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.worth(exp(middle)) >= price else (middle, high)
        return exp(high)


UNKNOWN = Rate(0.5, 30 * DAY)  # before anything is known: months for many pages, hours for some


def learned(rhythm: Rhythm, prior: Rate) -> Rate:
    """What is believed of a page after its looks: where the likelihood is greatest, and how sharply."""
    number, span = rhythm.changes, rhythm.spans / rhythm.changes if rhythm.changes else 0.0
    seconds = prior.seconds + rhythm.quiet
    if not number or span <= 0:
        return Rate(prior.shape, seconds)
    low, high = log(prior.shape / seconds), log((prior.shape + number) / seconds)
    for _ in range(STEPS):
        middle = (low + high) / 2
        rate = exp(middle)
        short = prior.shape + number * _known(rate * span) > rate * seconds
        low, high = (middle, high) if short else (low, middle)
    rate = exp((low + high) / 2)
    shape = rate * seconds + number * _sharpness(rate * span)
    return Rate(shape, shape / rate)


def host_rate(rhythms: Mapping[Rhythm, int], prior: Rate = UNKNOWN) -> Rate:
    """What pages of a host are like, from those that were looked at; few of them leave it near the prior."""
    seen = _some({each: number for each, number in rhythms.items() if each.changes or each.quiet})
    total, mean = sum(seen.values()), prior.mean
    if not total:
        return prior
    fits: list[tuple[float, Rate]] = []
    for shape in SHAPES:
        for _ in range(ROUNDS):
            rate = Rate(shape, shape / mean)
            rates = sum(learned(each, rate).mean * number for each, number in seen.items())
            mean = (FEW * prior.mean + rates) / (FEW + total)
        rate = Rate(shape, shape / mean)
        fit = sum(_fit(each, rate) * number for each, number in seen.items())
        fits.append((fit - log(shape / prior.shape) ** 2 / 2, rate))
    return max(fits, key=lambda pair: pair[0])[1]


@dataclass(frozen=True, slots=True)
class Signals:
    """What it means that a site tells of a change: the share of changes it tells, how often it is right."""

    recall: float = 0.0
    precision: float = 0.5

    @classmethod
    def of(cls, told: int, told_changes: int, looks: int, changes: int) -> "Signals":
        """Learned from looks: those after a signal, those of them that showed a change, all, all that did.

        Many signals meet a change by chance, so only what they tell beyond that counts.
        """
        by_chance = (told - told_changes + 1) / (looks - changes + 2)
        with_change = told_changes / (changes + 4)
        recall = (with_change - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
        quiet_told = (told - told_changes + 3) / (told + 4)
        quiet_untold = (looks - told - (changes - told_changes) + 3) / (looks - told + 4)
        precision = 1 - quiet_told / quiet_untold
        return cls(min(MOST, max(0.0, recall)), min(SURE, max(1 - SURE, precision)))

    def ageing(self, rate: Rate) -> float:
        """By how many seconds one signal ages a page."""
        return -log1p(-self.precision) / rate.mean

    def looks(self, rate: Rate, age: float) -> float:
        """Looks a second where a page is looked at when it, with its signals, has reached an age."""
        silent = 1 - self.recall
        signals = self.recall * rate.mean / self.precision  # a second
        if signals <= 0:
            return 1 / age
        ageing = self.ageing(rate)
        if ageing < age:
            return (silent + signals * ageing) / age
        return signals / -expm1(-signals * age / silent)


NO_SIGNALS = Signals()


@dataclass(frozen=True, slots=True)
class Plan:
    """What decides when a page is looked at next."""

    hosts: Mapping[str, Rate]
    price: float  # seconds of freshness that a look has to add
    shortest: float = 300.0
    longest: float = 30 * DAY
    signals: Signals = NO_SIGNALS
    usual: Rate = UNKNOWN  # of a host without pages

    def rate(self, host: str, rhythm: Rhythm) -> Rate:
        """What is believed of a page."""
        return learned(rhythm, self.hosts.get(host, self.usual))

    def wait(self, host: str, rhythm: Rhythm) -> float:
        """Seconds until the next look at a page, if nothing is heard of it."""
        age = self.rate(host, rhythm).interval(self.price, self.shortest, self.longest)
        return min(self.longest, age / (1 - self.signals.recall))

    def is_due(self, host: str, rhythm: Rhythm, seconds: float, told: int = 0) -> bool:
        """Whether a page is worth a look so long after the last, with so many signals since."""
        rate = self.rate(host, rhythm)
        age = seconds * (1 - self.signals.recall) + told * self.signals.ageing(rate)
        return seconds >= self.longest or age >= rate.interval(self.price, self.shortest, self.longest)


def plan_looks(
    pages: Iterable[tuple[str, Rhythm]],
    looks: float,
    *,
    shortest: float = 300.0,
    longest: float = 30 * DAY,
    signals: Signals = NO_SIGNALS,
) -> Plan:
    """The price at which all pages together cost so many looks a second; `longest` is kept in any case."""
    counted = Counter(pages)
    exact = len(counted) <= FEW_KINDS  # rounding saves time, and misses a small budget by more than a quarter
    if not exact:
        counted = _sum_rounded(counted)
    everywhere: Counter[Rhythm] = Counter()
    by_host: dict[str, Counter[Rhythm]] = {}
    for (host, rhythm), number in counted.items():
        everywhere[rhythm] += number
        by_host.setdefault(host, Counter())[rhythm] += number
    usual = host_rate(everywhere)
    alone = len(by_host) == 1
    hosts = {host: usual if alone else host_rate(found, usual) for host, found in by_host.items()}
    rates = [(learned(rhythm, hosts[host]), number) for (host, rhythm), number in counted.items()]
    rates = rates if exact else _alike(rates)

    def cost(price: float) -> float:
        ages = ((rate, number, rate.interval(price, shortest, longest)) for rate, number in rates)
        return sum(number * max(1 / longest, signals.looks(rate, age)) for rate, number, age in ages)

    return Plan(hosts, _price(cost, looks), shortest, longest, signals, usual)


def _sum_rounded(counted: Mapping[tuple[str, Rhythm], int]) -> Counter[tuple[str, Rhythm]]:
    """Count pages by the rounded rhythm."""
    rounded: Counter[tuple[str, Rhythm]] = Counter()
    for (host, rhythm), number in counted.items():
        rounded[host, rhythm.rounded] += number
    return rounded


def _some(rhythms: Mapping[Rhythm, int]) -> Mapping[Rhythm, int]:
    """Enough of many to learn from, spread over all kinds."""
    step = len(rhythms) // MANY + 1
    if step == 1:
        return rhythms
    ordered = sorted(rhythms.items(), key=lambda pair: (pair[0].changes, pair[0].quiet, pair[0].spans))
    return dict(ordered[::step])


def _alike(rates: Iterable[tuple[Rate, int]]) -> list[tuple[Rate, int]]:
    """How many pages there are of each kind, told apart by a few percent."""
    counted: Counter[Rate] = Counter()
    for rate, number in rates:
        shape = _rounded(rate.shape)
        counted[Rate(shape, shape / _rounded(rate.mean))] += number
    return list(counted.items())


def _price(cost: Callable[[float], float], looks: float) -> float:
    """Where a cost that falls with the price meets what there is to spend."""
    low, high = log(1e-12), log(1e10)
    for _ in range(STEPS + 8):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(exp(middle)) > looks else (low, middle)
    return exp(high)


def _known(expected: float) -> float:
    """How much a change that was seen says for a higher rate: less, the surer it was to be seen."""
    return 1.0 if expected < 1e-6 else expected / expm1(expected) if expected < 500 else 0.0


def _sharpness(expected: float) -> float:
    """How sharply such a change tells the rate."""
    if expected < 1e-4:
        return expected / 2
    if expected > 300:
        return 0.0
    return expected * (1 + (expected - 1) * exp(expected)) / expm1(expected) ** 2


def _fit(rhythm: Rhythm, prior: Rate) -> float:
    """How well what was seen of a page goes with what its host is like, as a logarithm."""
    after = learned(rhythm, prior)
    rate, shape = after.mean, after.shape
    seen = -rate * rhythm.quiet
    if rhythm.changes:
        seen += rhythm.changes * log(-expm1(-max(1e-12, rate * rhythm.spans / rhythm.changes)))
    before = prior.shape * log(prior.seconds * rate) - lgamma(prior.shape) - prior.seconds * rate
    return seen + before + lgamma(shape) + shape - shape * log(shape)


def _rounded(value: float) -> float:
    """The nearest of numbers that are a few percent apart."""
    return exp(round(log(value) / STEP) * STEP) if value > 0 else 0.0
