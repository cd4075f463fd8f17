"""Chunks that hold words of a query, scored by one full-text table; only as many as there is time for."""

from collections.abc import Sequence
from dataclasses import dataclass

from afresh.core.found import Match
from afresh.core.scoring import COUNTED, ROOM, expressions, scoring
from afresh.store.dialect import Row, Session

FEW = 12_000  # chunks of which every one with a word of the query may be scored


@dataclass(frozen=True, slots=True)
class Corner:
    """The part of the index that a search may answer from; all of it where no pages are named."""

    pages: Sequence[int] | None = None
    chunks: int = 0

    @property
    def is_small(self) -> bool:
        """Whether there is time to look at all of it."""
        return self.pages is not None and self.chunks <= FEW


@dataclass(frozen=True, slots=True)
class Table:
    """One full-text table in one transaction."""

    tx: Session
    name: str
    corner: Corner

    async def best(self, alternatives: Sequence[str], limit: int, also: Sequence[int]) -> list[Match]:
        """The chunks with any of the alternatives that score highest, and the scores of some others."""
        if self.corner.is_small:
            return _matches(await self._all("match_few", " OR ".join(alternatives), limit))
        counts = {each: await self._count(each, COUNTED) for each in alternatives}
        plan = scoring(counts)
        steps = [await self._count(step, ROOM + 1) for step in plan.steps]
        found: list[Row] = []
        for expression in expressions(plan, steps):
            found += await self._all("match", expression, limit)
        if also and not plan.whole:
            telling = [each for each in alternatives if counts[each] < COUNTED] or alternatives
            found += await self.tx.all(f"score_{self.name}", match=" OR ".join(telling), chunks=list(also))
        return _matches(found)

    async def exact(self, must: str, alternatives: Sequence[str], limit: int) -> list[Match]:
        """The same for chunks that hold something they must: so few that all of them are scored."""
        return _matches(await self._all("match", f"({must}) AND ({' OR '.join(alternatives)})", limit))

    async def _all(self, query: str, match: str, limit: int) -> Sequence[Row]:
        if self.corner.pages is None:
            return await self.tx.all(f"{query}_{self.name}", match=match, limit=limit)
        name = f"match_{'few' if self.corner.is_small else 'within'}_{self.name}"
        return await self.tx.all(name, match=match, pages=list(self.corner.pages), limit=limit)

    async def _count(self, match: str, most: int) -> int:
        row = await self.tx.one(f"count_{self.name}", match=match, most=most)
        return int(row["number"]) if row else 0


def _matches(rows: Sequence[Row]) -> list[Match]:
    return [Match(row["chunk"], -row["rank"]) for row in rows]
