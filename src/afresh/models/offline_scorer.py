"""Score links without an API, by comparing words by spelling and meaning."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from afresh.errors import EmbedderUnavailable
from afresh.links.keyword_match import KeywordFinder, KeywordMatch, looks_alike, score_similarity, significant_words
from afresh.links.score import MAX_COMMENT_CHARS, LinkJudgement, LinkToScore
from afresh.models.choose import FAST, builtin, check_installed
from afresh.models.local import EmbeddingModel
from afresh.ports import Matrix
from afresh.search.stemming import words_in
from afresh.text.plain import shortened

_MAX_CACHED_WORDS = 100_000
_MIN_SUM_LENGTH = 1e-6  # of a sum of vectors that is normalised
_VERSION = 1  # of the scoring rules: raise it when a score would change
_SLICE_LINKS = 1_000  # between two points where a stop takes effect


class WordSimilarity:
    """Compares words by meaning; caches their vectors."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model
        self._known: dict[str, Matrix] = {}

    def of(self, word: str, other: str) -> float:
        one, another = self._vectors((word, other))
        return float(one @ another)

    def nearest(self, links: Sequence[Sequence[str]], keywords: Sequence[str]) -> list[tuple[str, KeywordMatch] | None]:
        """Return for each link its nearest keyword (by nearest word and all words), the similarity and that word."""
        import numpy as np

        wanted = np.stack(self._vectors(keywords)).T
        parts = [words_in(keyword) for keyword in keywords]
        near: dict[str, Matrix] = {}
        words = list(dict.fromkeys(word for link in links for word in link))
        for word, vector in zip(words, self._vectors(words), strict=True):
            near[word] = vector @ wanted
            near[word][[any(looks_alike(word, part) for part in each) for each in parts]] = -1.0
        found: list[tuple[str, KeywordMatch] | None] = [None] * len(links)
        for number, link in enumerate(links):
            if link:
                rows = np.stack([near[word] for word in link])
                whole = np.sum(self._vectors(link), axis=0)
                best = rows.max(axis=0)
                both = (best + whole @ wanted / max(float(np.linalg.norm(whole)), _MIN_SUM_LENGTH)) / 2
                both[best < 0] = -1.0
                at = int(both.argmax())
                found[number] = keywords[at], KeywordMatch(float(both[at]), link[int(rows[:, at].argmax())])
        return found

    def _vectors(self, words: Sequence[str]) -> list[Matrix]:
        if len(self._known) > _MAX_CACHED_WORDS:
            self._known = {}
        known = self._known
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            known.update(zip(new, self._model.rows(new), strict=True))
        return [known[word] for word in words]


class OfflineLinkScorer:
    """Implements `ports.LinkScorer` by comparing words; without the built-in model, by spelling only."""

    is_free = True
    batch = 5_000
    calls = 0
    tokens = 0

    def __init__(self) -> None:
        self._similarity: WordSimilarity | None = None
        with suppress(EmbedderUnavailable):
            check_installed(FAST)
            model = builtin(FAST)
            self._similarity = WordSimilarity(model) if model else None
        self.recipe = f"offline/{_VERSION}+{FAST}" if self._similarity else f"offline/{_VERSION}"
        self._finder: tuple[Sequence[str], KeywordFinder] | None = None

    async def score(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> Sequence[LinkJudgement]:
        judgements: list[LinkJudgement] = []
        for at in range(0, len(links), _SLICE_LINKS):
            judgements += await asyncio.to_thread(self._score, links[at : at + _SLICE_LINKS], tuple(keywords))
        return judgements

    def _score(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> list[LinkJudgement]:
        if self._finder is None or self._finder[0] != keywords:
            alike = self._similarity.of if self._similarity else None
            self._finder = keywords, KeywordFinder(keywords, alike)
        found = [self._finder[1].matches(link) for link in links]
        if self._similarity is not None and keywords:
            unmatched = [at for at, matches in enumerate(found) if not matches]
            nearest = self._similarity.nearest([significant_words(links[at]) for at in unmatched], keywords)
            for at, near in zip(unmatched, nearest, strict=True):
                if near and (score := score_similarity(near[1].score)):
                    found[at] = {near[0]: KeywordMatch(score, near[1].words)}
        return [_judgement(link, matches) for link, matches in zip(links, found, strict=True) if matches]


def _judgement(link: LinkToScore, matches: Mapping[str, KeywordMatch]) -> LinkJudgement:
    ranked = sorted(matches.items(), key=lambda item: (-item[1].score, item[0]))
    comment = "; ".join(f"{keyword}: “{match.words}”" for keyword, match in ranked)
    scores = {keyword: round(match.score, 3) for keyword, match in ranked}
    return LinkJudgement(link.url, link.text, scores, shortened(comment, MAX_COMMENT_CHARS))
