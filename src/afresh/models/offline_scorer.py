"""Score links without an API: compare words locally, by spelling and by meaning."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from afresh.errors import EmbedderUnavailable
from afresh.links.keyword_match import KeywordFinder, KeywordMatch, likely_score, looks_alike, telling_words
from afresh.links.score import LONGEST_COMMENT, LinkJudgement, LinkToScore
from afresh.models.choose import FAST, check_installed, fast
from afresh.search.stemming import words_in
from afresh.text.plain import shortened

if TYPE_CHECKING:
    from afresh.models.local import EmbeddingModel
    from afresh.ports import Matrix


_MOST_WORDS = 100_000
_SHORTEST_SUM = 1e-6  # minimum length of a sum of vectors that is normalised


class NearestKeyword(NamedTuple):
    """The keyword closest to a link in meaning."""

    keyword: str
    likeness: float
    word: str  # of the link, the closest


class WordSimilarity:
    """Compares words by meaning; caches their vectors."""

    def __init__(self, model: "EmbeddingModel") -> None:
        self._model = model
        self._known: dict[str, Matrix] = {}

    def of(self, word: str, other: str) -> float:
        """Return the similarity of two words, from -1 to 1."""
        one, another = self._vectors((word, other))
        return float(one @ another)

    def nearest(self, links: Sequence[Sequence[str]], keywords: Sequence[str]) -> list[NearestKeyword | None]:
        """Return the nearest keyword of each link, by the mean of its nearest word and of all its words."""
        import numpy as np

        wanted = np.stack(self._vectors(keywords)).T
        parts = [words_in(keyword) for keyword in keywords]
        near: dict[str, Matrix] = {}
        words = list(dict.fromkeys(word for link in links for word in link))
        for word, vector in zip(words, self._vectors(words), strict=True):
            near[word] = vector @ wanted
            near[word][[any(looks_alike(word, part) for part in each) for each in parts]] = -1.0
        return [self._nearest(link, keywords, near, wanted) if link else None for link in links]

    def _nearest(
        self, words: Sequence[str], keywords: Sequence[str], near: "Mapping[str, Matrix]", wanted: "Matrix"
    ) -> NearestKeyword:
        import numpy as np

        rows = np.stack([near[word] for word in words])
        whole = np.sum(self._vectors(words), axis=0)
        best = rows.max(axis=0)
        both = (best + whole @ wanted / max(float(np.linalg.norm(whole)), _SHORTEST_SUM)) / 2
        both[best < 0] = -1.0
        at = int(both.argmax())
        return NearestKeyword(keywords[at], float(both[at]), words[int(rows[:, at].argmax())])

    def _vectors(self, words: Iterable[str]) -> "list[Matrix]":
        asked = list(words)
        if len(self._known) > _MOST_WORDS:
            self._known = {}
        known = self._known
        new = [word for word in dict.fromkeys(asked) if word not in known]
        if new:
            known.update(zip(new, self._model.rows(new), strict=True))
        return [known[word] for word in asked]


_VERSION = 1  # of the rules and their numbers: raise it when a score would change
_SLICE = 1_000  # links between two points where a stop takes effect


class OfflineLinkScorer:
    """Implements `ports.LinkScorer` by the words of a link: no key, no network, no cost.

    Without the built-in model, words are compared by spelling only.
    """

    is_free = True
    batch = 5_000
    calls = 0
    tokens = 0

    def __init__(self) -> None:
        self._has_model = False
        with suppress(EmbedderUnavailable):
            check_installed(FAST)
            self._has_model = True
        self.recipe = f"offline/{_VERSION}+{FAST}" if self._has_model else f"offline/{_VERSION}"
        self._likeness: WordSimilarity | None = None
        self._seeker: tuple[Sequence[str], KeywordFinder] | None = None

    async def score(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> Sequence[LinkJudgement]:
        """Return the keywords that fit each link, computed in a thread."""
        verdicts: list[LinkJudgement] = []
        for at in range(0, len(links), _SLICE):
            verdicts += await asyncio.to_thread(self._scored, links[at : at + _SLICE], tuple(keywords))
        return verdicts

    async def close(self) -> None:
        """Do nothing."""

    def _scored(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> list[LinkJudgement]:
        seeker = self._seeker_for(keywords)
        found = [seeker.matches(link) for link in links]
        unsaid = [at for at, matches in enumerate(found) if not matches]
        likely = self._likely([links[at] for at in unsaid], keywords)
        for at, matches in zip(unsaid, likely, strict=True):
            found[at] = matches
        return [_verdict(link, matches) for link, matches in zip(links, found, strict=True) if matches]

    def _seeker_for(self, keywords: Sequence[str]) -> KeywordFinder:
        if self._has_model and self._likeness is None:
            self._likeness = WordSimilarity(fast())
        if self._seeker is None or self._seeker[0] != keywords:
            self._seeker = keywords, KeywordFinder(keywords, self._likeness.of if self._likeness else None)
        return self._seeker[1]

    def _likely(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> list[dict[str, KeywordMatch]]:
        if self._likeness is None or not keywords:
            return [{} for _ in links]
        found: list[dict[str, KeywordMatch]] = []
        for near in self._likeness.nearest([telling_words(link) for link in links], keywords):
            score = likely_score(near.likeness) if near else None
            found.append({near.keyword: KeywordMatch(score, near.word)} if near and score else {})
        return found


def _verdict(link: LinkToScore, matches: Mapping[str, KeywordMatch]) -> LinkJudgement:
    ranked = sorted(matches.items(), key=lambda item: (-item[1].score, item[0]))
    told = "; ".join(f"{keyword}: “{match.word}”" for keyword, match in ranked)
    scores = {keyword: round(match.score, 3) for keyword, match in ranked}
    return LinkJudgement(link.url, link.text, scores, shortened(told, LONGEST_COMMENT))
