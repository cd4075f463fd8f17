"""What scores links."""

from collections.abc import Sequence
from typing import Protocol

from afresh.links.score import AskedLink, Verdict


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
