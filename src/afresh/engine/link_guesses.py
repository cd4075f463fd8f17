"""What links may be worth before a scorer that is paid was asked about them."""

from collections.abc import Mapping, Sequence

from afresh.core.link_score import Answered, AskedLink, Unasked, Weighing, total_score
from afresh.ports import LinkScorer


class LinkGuesses:
    """Scores by a scorer that costs nothing; they say what is read first, and are never kept."""

    def __init__(self, scorer: LinkScorer, weighing: Weighing) -> None:
        self.begun = False  # whether links of earlier runs were noted
        self._scorer = scorer
        self._weighing = weighing
        self._open: dict[AskedLink, None] = {}
        self._worths: dict[str, float] = {}

    def note(self, unasked: Sequence[Unasked]) -> None:
        """Links that wait for an answer."""
        self._open.update(dict.fromkeys(each.link for each in unasked))

    def forget(self, answers: Sequence[Answered]) -> None:
        """The links that were answered: from now on the answer counts, also that nothing fits."""
        for answer in answers:
            self._open.pop(answer.link, None)
            self._worths.pop(answer.link.url, None)

    async def worths(self) -> Mapping[str, float]:
        """The links that may be worth something: address to score."""
        self.begun = True
        links, self._open = list(self._open), {}
        weights, unknown = self._weighing.weights, self._weighing.unknown
        for said in await self._scorer.score(links, tuple(weights)) if links else ():
            score = total_score(said.keywords, weights, unknown)
            self._worths[said.url] = max(score, self._worths.get(said.url, 0.0))
        return self._worths
