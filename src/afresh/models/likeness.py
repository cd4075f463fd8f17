"""How near words and links are in meaning, by the vectors of a loaded model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from afresh.links.likeness import looks_alike
from afresh.links.words import plain_words

if TYPE_CHECKING:
    from afresh.models.local import Rows
    from afresh.ports import Matrix

_MOST_WORDS = 100_000
_SHORTEST = 1e-6  # of a sum of vectors that may be divided by its length


class Nearest(NamedTuple):
    """The keyword that a link is nearest to."""

    keyword: str
    likeness: float
    word: str  # of the link, the nearest


class Likeness:
    """Compares words; the vector of each is made once."""

    def __init__(self, model: "Rows") -> None:
        self._model = model
        self._known: dict[str, Matrix] = {}

    def of(self, word: str, other: str) -> float:
        """How near two words are, from -1 to 1."""
        one, another = self._vectors((word, other))
        return float(one @ another)

    def nearest(self, links: Sequence[Sequence[str]], keywords: Sequence[str]) -> list[Nearest | None]:
        """For the words of each link the nearest keyword: mean of the nearest word and of all as one text."""
        import numpy as np

        wanted = np.stack(self._vectors(keywords)).T
        parts = [plain_words(keyword) for keyword in keywords]
        near: dict[str, Matrix] = {}
        for word, vector in zip(words := _distinct(links), self._vectors(words), strict=True):
            near[word] = vector @ wanted
            near[word][[any(looks_alike(word, part) for part in each) for each in parts]] = -1.0
        return [self._nearest(link, keywords, near, wanted) if link else None for link in links]

    def _nearest(
        self, words: Sequence[str], keywords: Sequence[str], near: "Mapping[str, Matrix]", wanted: "Matrix"
    ) -> Nearest:
        import numpy as np

        rows = np.stack([near[word] for word in words])
        whole = np.sum(self._vectors(words), axis=0)
        best = rows.max(axis=0)
        both = (best + whole @ wanted / max(float(np.linalg.norm(whole)), _SHORTEST)) / 2
        both[best < 0] = -1.0
        at = int(both.argmax())
        return Nearest(keywords[at], float(both[at]), words[int(rows[:, at].argmax())])

    def _vectors(self, words: Iterable[str]) -> "list[Matrix]":
        asked = list(words)
        if len(self._known) > _MOST_WORDS:
            self._known = {}
        known = self._known
        new = [word for word in dict.fromkeys(asked) if word not in known]
        if new:
            known.update(zip(new, self._model.rows(new), strict=True))
        return [known[word] for word in asked]


def _distinct(links: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(word for link in links for word in link))
