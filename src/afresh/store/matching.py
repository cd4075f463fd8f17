"""Chunks that hold words of a query, scored by one full-text table; only as many as there is time for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from afresh.search.candidates import ROOM, expressions, scoring
from afresh.search.request import Narrowed
from afresh.search.results import Match
from afresh.search.stemming import ENGLISH, SIMPLE, search_config
from afresh.store.dialect import Row, Session

FEW = 3_000  # chunks of which every one with a word of the query may be scored
MOST_ROOM = 3 * ROOM  # texts that may be found, where only those in a corner of the index are scored


@dataclass(frozen=True, slots=True)
class Corner:
    """The part of the index that a search may answer from; all of it where no pages are named."""

    pages: Sequence[int] | None = None
    number: int = 0  # of chunks
    of: int = 0  # chunks in the whole index, at most
    inside: bytes | None = None  # a byte for every chunk of the index, 1 for those in it; unless that is long

    @property
    def is_small(self) -> bool:
        """Whether there is time to look at all of it."""
        return self.pages is not None and self.number <= FEW

    @property
    def room(self) -> int:
        """How many texts of the whole index may be found: the smaller the corner, the fewer are scored."""
        if self.pages is None:
            return ROOM
        return min(MOST_ROOM, ROOM * max(1, self.of // max(1, self.number)))

    @property
    def query(self) -> tuple[str, dict[str, object]]:
        """The statement that finds what is in it, and by what."""
        if self.inside is not None:
            return "match_inside", {"inside": self.inside}
        return ("match", {}) if self.pages is None else ("match_within", {"pages": self.pages})


class Count(NamedTuple):
    """How many texts match, as far as they were counted."""

    number: int
    most: int

    def tells(self, most: int) -> bool:
        """Whether it tells how many there are, up to a number."""
        return self.number < self.most or most <= self.most


Counted = dict[tuple[str, str], Count]  # by table and expression


@dataclass(frozen=True, slots=True)
class Known:
    """What need not be asked again until new chunks come."""

    newest: int = 0
    configs: tuple[str, ...] = ()
    counted: Counted = field(default_factory=dict)
    corners: dict[Narrowed, Corner] = field(default_factory=dict)  # whole sources
    texts: int = 0  # about how many there are, where that is not told by the index itself

    def tables(self, language: str | None) -> dict[str, list[str]]:
        """The configurations that pages of a language, or all, are indexed under, by full-text table."""
        found = list(self.configs)
        if language is not None:  # a page that an older afresh has indexed is simple
            found = [config for config in found if config in (search_config(language), SIMPLE)]
        return {
            "english": [config for config in found if config == ENGLISH],
            "simple": [config for config in found if config != ENGLISH],
        }


@dataclass(frozen=True, slots=True)
class Table:
    """One full-text table in one transaction."""

    tx: Session
    name: str
    corner: Corner
    known: Known

    @property
    def bound_by(self) -> int:
        """The number of texts, at most, that bounds how high a text can score; 0 where nothing does."""
        return self.known.newest

    async def best(self, alternatives: Sequence[str], limit: int) -> list[Match]:
        """The chunks with any of the alternatives that score highest."""
        if self.corner.is_small:
            return await self._scored([" OR ".join(alternatives)], alternatives, limit)
        room = self.corner.room
        counts = dict(zip(alternatives, await self._counts(alternatives, 2 * room), strict=True))
        plan = scoring(counts, room, texts=self.bound_by)
        steps = await self._counts(plan.steps, room + 1)
        return await self._scored(expressions(plan, steps, room), alternatives, limit, plan.rest)

    async def scores(self, alternatives: Sequence[str], chunks: Sequence[int]) -> list[Match]:
        """The scores of some chunks, where `best` leaves some out; the most frequent words aside."""
        counts = dict(zip(alternatives, await self._counts(alternatives, 2 * ROOM), strict=True))
        if scoring(counts).whole:
            return []
        telling = [each for each in alternatives if counts[each] < 2 * ROOM] or alternatives
        asked = {"match": " OR ".join(telling), "chunks": list(chunks)}
        [rows] = await self.find(f"score_{self.name}", [asked], telling)
        return _matches(rows)

    async def exact(self, must: str, alternatives: Sequence[str], limit: int) -> list[Match]:
        """The same for chunks that hold something they must: so few that all of them are scored."""
        return await self._scored([f"({must}) AND ({' OR '.join(alternatives)})"], alternatives, limit)

    async def find(
        self, statement: str, asked: Sequence[Mapping[str, object]], among: Sequence[str]
    ) -> Sequence[Sequence[Row]]:
        """What a statement finds for each of some expressions, which are made of these alternatives."""
        del among  # SQLite weighs them by itself
        return await self.tx.each(statement, asked)

    async def _scored(
        self, expressions: Sequence[str], alternatives: Sequence[str], limit: int, rest: float = inf
    ) -> list[Match]:
        """The best of what matches any expression, each with its highest score.

        The first is enough where it finds as many as wanted that score no less than the rest can.
        """
        name, where = self.corner.query
        best: dict[int, float] = {}
        for each in expressions:
            if len(best) >= limit and min(best.values()) >= rest:
                break
            asked = {"match": each, "limit": limit, **where}
            [rows] = await self.find(f"{name}_{self.name}", [asked], alternatives)
            for chunk, score in _matches(rows):
                best[chunk] = max(score, best.get(chunk, score))
        return [Match(chunk, score) for chunk, score in best.items()]

    async def _counts(self, expressions: Sequence[str], most: int) -> list[int]:
        """How many texts match, up to a number beyond which it does not matter."""
        unknown = [each for each in expressions if not self._count(each).tells(most)]
        asked = [{"match": each, "most": most} for each in unknown]
        for each, rows in zip(unknown, await self.find(f"count_{self.name}", asked, ()), strict=True):
            self.known.counted[self.name, each] = Count(rows[0]["number"], most)
        return [min(self._count(each).number, most) for each in expressions]

    def _count(self, expression: str) -> Count:
        return self.known.counted.get((self.name, expression), Count(0, 0))


def _matches(rows: Sequence[Row]) -> list[Match]:
    return [Match(row["chunk"], -row["score"]) for row in rows]
