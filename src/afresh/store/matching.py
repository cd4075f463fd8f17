"""Chunks that hold words of a query, scored by one full-text table; only as many as there is time for."""

from collections.abc import Sequence
from dataclasses import dataclass

from afresh.core.found import Match
from afresh.core.scoring import ROOM, expressions, scoring
from afresh.store.dialect import Row, Session

FEW = 3_000  # chunks of which every one with a word of the query may be scored
MOST_ROOM = 3 * ROOM  # texts that may be found, where only those in a corner of the index are scored


@dataclass(frozen=True, slots=True)
class Corner:
    """The part of the index that a search may answer from; all of it where no pages are named."""

    pages: Sequence[int] | None = None
    chunks: int = 0
    of: int = 0  # chunks in the whole index, at most

    @property
    def is_small(self) -> bool:
        """Whether there is time to look at all of it."""
        return self.pages is not None and self.chunks <= FEW

    @property
    def room(self) -> int:
        """How many texts of the whole index may be found: the smaller the corner, the fewer are scored."""
        if self.pages is None:
            return ROOM
        return min(MOST_ROOM, ROOM * max(1, self.of // max(1, self.chunks)))

    @property
    def query(self) -> str:
        """The statement that finds what is in it: by a list of its chunks, unless that would be long."""
        if self.pages is None:
            return "match"
        return "match_within" if 2 * self.chunks > self.of else "match_few"


@dataclass(frozen=True, slots=True)
class Table:
    """One full-text table in one transaction."""

    tx: Session
    name: str
    corner: Corner

    async def best(self, alternatives: Sequence[str], limit: int, also: Sequence[int]) -> list[Match]:
        """The chunks with any of the alternatives that score highest, and the scores of some others."""
        if self.corner.is_small:
            return await self._scored([" OR ".join(alternatives)], limit)
        room = self.corner.room
        counts = dict(zip(alternatives, await self._counts(alternatives, 2 * room), strict=True))
        plan = scoring(counts, room)
        steps = await self._counts(plan.steps, room + 1)
        found = await self._scored(expressions(plan, steps, room), limit)
        if also and not plan.whole:
            telling = [each for each in alternatives if counts[each] < 2 * room] or alternatives
            others = await self.tx.all(f"score_{self.name}", match=" OR ".join(telling), chunks=list(also))
            found += _matches(others)
        return found

    async def exact(self, must: str, alternatives: Sequence[str], limit: int) -> list[Match]:
        """The same for chunks that hold something they must: so few that all of them are scored."""
        return await self._scored([f"({must}) AND ({' OR '.join(alternatives)})"], limit)

    async def _scored(self, expressions: Sequence[str], limit: int) -> list[Match]:
        pages = self.corner.pages
        where: dict[str, object] = (
            {"limit": limit} if pages is None else {"limit": limit, "pages": list(pages)}
        )
        asked = [{"match": expression, **where} for expression in expressions]
        return [
            match
            for rows in await self.tx.each(f"{self.corner.query}_{self.name}", asked)
            for match in _matches(rows)
        ]

    async def _counts(self, expressions: Sequence[str], most: int) -> list[int]:
        asked = [{"match": expression, "most": most} for expression in expressions]
        return [int(rows[0]["number"]) for rows in await self.tx.each(f"count_{self.name}", asked)]


def _matches(rows: Sequence[Row]) -> list[Match]:
    return [Match(row["chunk"], -row["rank"]) for row in rows]
