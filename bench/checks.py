"""Fast but wrong counts for nothing: what every step must have found."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.access_log import Asked, statuses
from bench.baseline import Loop
from bench.corpus import Corpus
from bench.subject import Afresh, Answer

WORDS_AT_ONCE = 50  # afresh reads the first 64 words of a query


@dataclass(frozen=True)
class Check:
    """One expectation and what came of it."""

    corpus: str
    round: int
    step: str
    what: str
    expected: object
    got: object
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether it came as expected."""
        return self.expected == self.got

    def as_json(self) -> dict[str, object]:
        """The check with its verdict."""
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True)
class Examiner:
    """Makes the checks of one corpus in one round."""

    corpus: Corpus
    base: str
    round: int

    def loop(self, loop: Loop) -> Iterator[Check]:
        """The bare loop must have got every page, and a 304 for each when it asked conditionally."""
        number = len(self.corpus.pages)
        if self.corpus.expected_pages is not None:
            yield self._equal("corpus", "linked pages", self.corpus.expected_pages, number)
        for status, passes in (("200", loop.get), ("304", loop.conditional)):
            got = [each.statuses for each in passes]
            yield self._equal("bare loop", f"{status} in each pass", [{status: number}] * len(got), got)

    def crawl(self, answer: Answer, requests: list[Asked]) -> Iterator[Check]:
        """A first crawl finds every linked page once."""
        number = len(self.corpus.pages)
        yield from self._report("crawl", answer, {"new": number})
        yield self._equal("crawl", "200 in the access log", number, self._statuses(requests).get(200, 0))

    def unchanged(self, answer: Answer, requests: list[Asked]) -> Iterator[Check]:
        """A refresh right after is answered by 304 alone."""
        number = len(self.corpus.pages)
        yield from self._report("refresh", answer, {"not_modified": number})
        yield self._equal("refresh", "304 in the access log", number, self._statuses(requests).get(304, 0))
        yield self._equal("refresh", "200 in the access log", 0, self._statuses(requests).get(200, 0))

    def mix(self, answer: Answer, requests: list[Asked], unreachable: Collection[str]) -> Iterator[Check]:
        """A refresh after the mix processes exactly what changed or is new, and drops what is gone."""
        mix = self.corpus.mix
        yield from self._report(
            "mix",
            answer,
            {
                "new": len(mix.added),
                "changed": len(mix.changed),
                "deleted": len(mix.deleted),
                "missing": len(unreachable),
                "not_modified": len(mix.before) - len(mix.deleted) - len(mix.changed),
            },
        )
        downloads = len(mix.added) + len(mix.changed)
        yield self._equal("mix", "200 in the access log", downloads, self._statuses(requests).get(200, 0))

    def index(self, step: str, afresh: Afresh, pages: Collection[str]) -> Iterator[Check]:
        """The index holds these pages and no other."""
        listed = [page["url"] for page in afresh.pages(self.corpus.name).value]
        yield self._equal(step, "pages listed twice", 0, len(listed) - len(set(listed)))
        yield self._same(step, "pages in the index", pages, set(listed))

    def words(self, step: str, afresh: Afresh, words: Mapping[str, str], found: bool) -> Iterator[Check]:
        """A search for unique words leads to exactly their pages, or to none."""
        hits: set[str] = set()
        every = list(words.values())
        for at in range(0, len(every), WORDS_AT_ONCE):
            some = " ".join(every[at : at + WORDS_AT_ONCE])
            hits.update(hit["url"] for hit in afresh.search(some, 4 * WORDS_AT_ONCE, "text").value)
        kind = next(iter(every), "")[:5]
        yield self._same(step, f"found by the words {kind}…", words if found else (), hits)

    def _report(self, step: str, answer: Answer, expected: dict[str, int]) -> Iterator[Check]:
        yield self._equal(step, "exit code", 0, answer.cost.exit_code)
        yield self._equal(step, "state", "completed", answer.value.get("state"))
        counts = ("new", "changed", "unchanged", "not_modified", "deleted", "missing", "moved", "failed")
        for key in (*counts, "refused", "held"):
            yield self._equal(step, key, expected.get(key, 0), answer.count(key))

    def _statuses(self, requests: list[Asked]) -> Mapping[int, int]:
        return statuses(requests, f"/{self.corpus.name}/")

    def _equal(self, step: str, what: str, expected: object, got: object, detail: str = "") -> Check:
        return Check(self.corpus.name, self.round, step, what, expected, got, detail)

    def _same(self, step: str, what: str, pages: Collection[str], got: set[str]) -> Check:
        expected = {self.corpus.url(self.base, page) for page in pages}
        lost, extra = sorted(expected - got), sorted(got - expected)
        detail = "; ".join(
            f"{word}: {', '.join(urls[:5])}" for word, urls in (("lost", lost), ("too many", extra)) if urls
        )
        verdict: dict[str, Any] = {"right": len(expected & got), "lost": len(lost), "too many": len(extra)}
        return self._equal(step, what, {"right": len(expected), "lost": 0, "too many": 0}, verdict, detail)
