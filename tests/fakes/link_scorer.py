"""A link scorer without a model: keywords that stand in a link's text or address, with troubles on demand."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence

from afresh.errors import ScoreError
from afresh.links.score import LinkJudgement, LinkToScore

_WORD = re.compile(r"[^\W_]+")
TOKENS = 10  # that a link costs


class FakeLinkScorer:
    """Fulfils `ports.LinkScorer` as a model that is paid by the call; what it was asked is remembered.

    `troubles` maps the number of a call, from 1, to the error that it raises. `volunteers` is what it names
    besides: a function of the link to keywords with scores.
    """

    def __init__(
        self,
        *,
        batch: int = 50,
        recipe: str = "fake/1",
        is_free: bool = False,
        troubles: Mapping[int, ScoreError] | None = None,
        volunteers: Callable[[LinkToScore], Mapping[str, float]] = lambda link: {},
    ) -> None:
        self.recipe = recipe
        self.is_free = is_free
        self.batch = batch
        self.calls = 0
        self.tokens = 0
        self.troubles = dict(troubles or {})
        self.always: ScoreError | None = None  # raised by every call that `troubles` does not name
        self.volunteers = volunteers
        self.asked: list[tuple[tuple[LinkToScore, ...], tuple[str, ...]]] = []
        self.hangs_at: int | None = None  # the number of a call that waits until it is cancelled
        self.hanging = asyncio.Event()
        self.answered = asyncio.Event()  # set once a call has ended well
        self.closed = False

    async def score(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> Sequence[LinkJudgement]:
        """What stands in each link, or the failure that is due."""
        self.calls += 1
        self.asked.append((tuple(links), tuple(keywords)))
        if self.calls == self.hangs_at:
            self.hanging.set()
            await asyncio.Event().wait()
        failure = self.troubles.get(self.calls, self.always)
        if failure is not None:
            raise failure
        self.tokens += TOKENS * len(links)
        self.answered.set()
        verdicts = [self._verdict(link, keywords) for link in links]
        return [verdict for verdict in verdicts if verdict.keywords]

    async def close(self) -> None:
        """Remember that the owner closed it."""
        self.closed = True

    def _verdict(self, link: LinkToScore, keywords: Sequence[str]) -> LinkJudgement:
        words = {word.casefold() for word in _WORD.findall(f"{link.text} {link.url}")}
        found = {keyword: 1.0 for keyword in keywords if words & {keyword, f"{keyword}s"}}
        return LinkJudgement(link.url, link.text, {**found, **self.volunteers(link)}, f"says {link.text}")
