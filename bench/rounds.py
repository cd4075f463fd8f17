"""One round: the bare loop and afresh in turn, each step checked before the next."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench import baseline
from bench.access_log import Asked
from bench.checks import Check, Examiner
from bench.corpus import Corpus
from bench.measure import Cost
from bench.mix import unreachable_after
from bench.servers import Server
from bench.subject import Afresh, Answer


@dataclass(frozen=True)
class Step:
    """One measured command of a round."""

    cost: Cost
    pages: int
    first_request_s: float | None = None
    report_s: float | None = None  # what afresh says the run took


@dataclass(frozen=True)
class Round:
    """All figures and checks of one corpus in one round."""

    corpus: str
    loop: baseline.Loop
    steps: dict[str, Step]
    searches: tuple[Cost, ...]
    checks: list[Check] = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """What all rounds share."""

    server: Server
    work: Path
    repeat: int  # how often a short command is run
    say: Callable[[str], None]


def play(corpus: Corpus, number: int, setting: Setting) -> Round:
    """Play one round on a fresh copy of the corpus and an empty store."""
    return _Play(corpus, number, setting).all()


class _Play:
    def __init__(self, corpus: Corpus, number: int, setting: Setting) -> None:
        self.corpus = corpus
        self.number = number
        self.setting = setting
        self.server = setting.server
        self.afresh = Afresh(setting.work, setting.work / "stores" / f"{corpus.name}.db")
        self.examiner = Examiner(corpus, self.server.base, number)
        self.checks: list[Check] = []

    def all(self) -> Round:
        self.corpus.reset()
        self.afresh.forget()
        loop = self._loop()
        steps = {"crawl": self._crawl(), "refresh": self._refresh()}
        loop += self._loop()
        steps["mix"] = self._mix()
        searches = self._searches()
        return Round(self.corpus.name, loop, steps, searches, self.checks)

    def _loop(self) -> baseline.Loop:
        loop = baseline.measure([self.corpus.url(self.server.base, page) for page in self.corpus.pages])
        self._requests("loop")
        self.checks += self.examiner.loop(loop)
        return loop

    def _crawl(self) -> Step:
        answer = self.afresh.crawl(self.corpus.start(self.server.base), self.corpus.name)
        requests = self._requests("crawl")
        self.checks += self.examiner.crawl(answer, requests)
        self.checks += self.examiner.index("crawl", self.afresh, self.corpus.pages)
        self.checks += self.examiner.words("crawl", self.afresh, self.corpus.mix.deleted, found=True)
        return self._step("first crawl", answer, requests)

    def _refresh(self) -> Step:
        answer = self.afresh.refresh()
        requests = self._requests("refresh")
        self.checks += self.examiner.unchanged(answer, requests)
        return self._step("refresh, nothing changed", answer, requests)

    def _mix(self) -> Step:
        self.corpus.update()
        answer = self.afresh.refresh()
        requests = self._requests("mix")
        mix = self.corpus.mix
        unreachable = unreachable_after(self.corpus.served, mix)
        self.checks += self.examiner.mix(answer, requests, unreachable)
        self.checks += self.examiner.index("mix", self.afresh, mix.after)
        self.checks += self.examiner.words("mix", self.afresh, mix.modified, found=True)
        self.checks += self.examiner.words("mix", self.afresh, mix.added, found=True)
        self.checks += self.examiner.words("mix", self.afresh, mix.deleted, found=False)
        return self._step("refresh, typical mix", answer, requests)

    def _searches(self) -> tuple[Cost, ...]:
        answers = [self.afresh.search(self.corpus.query) for _ in range(self.setting.repeat)]
        found = all(answer.value for answer in answers)
        self.checks.append(
            Check(self.corpus.name, self.number, "search", f"hits for {self.corpus.query!r}", True, found)
        )
        return tuple(answer.cost for answer in answers)

    def _requests(self, step: str) -> list[Asked]:
        return self.server.log.step(f"{self.corpus.name}-{self.number}-{step}")

    def _step(self, title: str, answer: Answer, requests: list[Asked]) -> Step:
        cost = answer.cost
        self.setting.say(f"{self.corpus.name}, round {self.number}: {title} {cost.wall_s:.2f} s")
        first = min((each.began_at for each in requests), default=None)
        # The mix, too, is counted per page that was known before: each of them has to be asked about.
        return Step(
            cost=cost,
            pages=len(self.corpus.pages),
            first_request_s=None if first is None else max(0.0, first - cost.started_at),
            report_s=float(answer.value.get("seconds") or 0.0),
        )
