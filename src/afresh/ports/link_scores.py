"""What scores links, and what a store keeps of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.link_score import Answered, AskedLink, Unasked, Verdict, Weighing
from afresh.core.model import Run, SourceId


class LinkScorer(Protocol):
    """Says which keywords fit a link, by its text and address alone; made anew for every run.

    Trouble is a ScoreError for the links of one call, a ScorerDown where none can be scored any more; what
    was said before it came is in its `found`.
    """

    recipe: str  # a fingerprint of scorer, model and prompt, not of keywords
    is_free: bool  # asking costs nothing
    batch: int  # links that one call takes
    calls: int  # made so far to a model
    tokens: int  # spent so far

    async def score(self, links: Sequence[AskedLink], keywords: Sequence[str]) -> Sequence[Verdict]:
        """What fits each link; links that no keyword fits are left out, others than asked are never in it."""
        ...

    async def close(self) -> None: ...


class LinkAnswers(Protocol):
    """What a store keeps of scored links: answers by target and text, and the worth that follows."""

    async def links_seal(self, source: SourceId) -> str | None: ...
    async def unasked_links(
        self,
        source: SourceId,
        recipe: str,
        keywords: Sequence[str],
        among: Sequence[AskedLink] | None = None,
    ) -> Sequence[Unasked]: ...
    async def unasked_count(self, source: SourceId, recipe: str, keywords: Sequence[str]) -> int: ...
    async def asked_count(self, source: SourceId) -> int: ...
    async def keep_answers(
        self,
        run: Run,
        answers: Sequence[Answered],
        weighing: Weighing,
        counts: Mapping[str, int],
        now: datetime,
    ) -> None: ...
    async def weigh_links(self, source: SourceId, weighing: Weighing, seal: str | None) -> None: ...
    async def link_scores(self, source: SourceId) -> Mapping[str, float]: ...
    async def calls_since(self, moment: datetime) -> int: ...
