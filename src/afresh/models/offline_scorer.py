"""Link scores without a model behind an API: words compared on this machine."""

import asyncio
from collections.abc import Mapping, Sequence

from afresh.errors import EmbedderDown
from afresh.links.keyword_match import Match, Seeker
from afresh.links.likeness import likely_score, telling_words
from afresh.links.score import LONGEST_COMMENT, AskedLink, Verdict
from afresh.models.choose import FAST, check_installed, fast
from afresh.models.likeness import Likeness
from afresh.text.plain import shortened

_VERSION = 1  # of the rules and their figures: raise it when a score would change
_SLICE = 1_000  # links between two moments at which a stop is heard


class OfflineLinkScorer:
    """Fulfils `ports.LinkScorer` by the words of a link: no key, no network, no cost.

    Where the embedded model is not installed, words are compared by their letters alone.
    """

    is_free = True
    batch = 5_000
    calls = 0
    tokens = 0

    def __init__(self) -> None:
        self._has_model = _is_installed()
        self.recipe = f"offline/{_VERSION}+{FAST}" if self._has_model else f"offline/{_VERSION}"
        self._likeness: Likeness | None = None
        self._seeker: tuple[Sequence[str], Seeker] | None = None

    async def score(self, links: Sequence[AskedLink], keywords: Sequence[str]) -> Sequence[Verdict]:
        """What fits each link, worked out in a thread."""
        verdicts: list[Verdict] = []
        for at in range(0, len(links), _SLICE):
            verdicts += await asyncio.to_thread(self._scored, links[at : at + _SLICE], tuple(keywords))
        return verdicts

    async def close(self) -> None:
        """Nothing is open."""

    def _scored(self, links: Sequence[AskedLink], keywords: Sequence[str]) -> list[Verdict]:
        seeker = self._seeker_for(keywords)
        found = [seeker.matches(link) for link in links]
        unsaid = [at for at, matches in enumerate(found) if not matches]
        likely = self._likely([links[at] for at in unsaid], keywords)
        for at, matches in zip(unsaid, likely, strict=True):
            found[at] = matches
        return [_verdict(link, matches) for link, matches in zip(links, found, strict=True) if matches]

    def _seeker_for(self, keywords: Sequence[str]) -> Seeker:
        if self._has_model and self._likeness is None:
            self._likeness = Likeness(fast())
        if self._seeker is None or self._seeker[0] != keywords:
            self._seeker = keywords, Seeker(keywords, self._likeness.of if self._likeness else None)
        return self._seeker[1]

    def _likely(self, links: Sequence[AskedLink], keywords: Sequence[str]) -> list[dict[str, Match]]:
        """What links may be about that say no word of a keyword."""
        if self._likeness is None or not keywords:
            return [{} for _ in links]
        found: list[dict[str, Match]] = []
        for near in self._likeness.nearest([telling_words(link) for link in links], keywords):
            score = likely_score(near.likeness) if near else None
            found.append({near.keyword: Match(score, near.word)} if near and score else {})
        return found


def _is_installed() -> bool:
    try:
        check_installed(FAST)
    except EmbedderDown:
        return False
    return True


def _verdict(link: AskedLink, matches: Mapping[str, Match]) -> Verdict:
    ranked = sorted(matches.items(), key=lambda item: (-item[1].score, item[0]))
    told = "; ".join(f"{keyword}: “{match.word}”" for keyword, match in ranked)
    scores = {keyword: round(match.score, 3) for keyword, match in ranked}
    return Verdict(link.url, link.text, scores, shortened(told, LONGEST_COMMENT))
