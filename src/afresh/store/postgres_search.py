"""Searching by words in PostgreSQL: what is found is what SQLite finds, scores are near its own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afresh.search.candidates import ROOM
from afresh.search.request import Narrowed
from afresh.store.dialect import Row, Session
from afresh.store.matching import Corner, Known, Table
from afresh.store.narrowing import pages_within
from afresh.store.postgres_words import query_of
from afresh.store.search import SearchRepository


@dataclass(frozen=True, slots=True)
class WordTable(Table):
    """One of the two text indexes in one transaction; the server does not know how seldom a word is."""

    @property
    def bound_by(self) -> int:
        """Nothing: a rank of the server's is no BM25."""
        return 0

    async def find(
        self, statement: str, asked: Sequence[Mapping[str, object]], among: Sequence[str]
    ) -> Sequence[Sequence[Row]]:
        """What a statement finds for each of some expressions; each alternative is worth its seldomness."""
        english = self.name == "english"
        counts = await self._counts(among, 2 * ROOM) if among else ()
        weighed = {
            "matches": [query_of(each, english=english) for each in among],
            "worth": [self._worth(number) for number in counts],
        }
        questions = [query_of(str(each["match"]), english=english) for each in asked]
        return await self.tx.each(
            statement,
            [{**each, **weighed, "match": match} for each, match in zip(asked, questions, strict=True)],
        )

    def _worth(self, number: int) -> float:
        return math.log(1 + (max(self.known.texts, number) - number + 0.5) / (number + 0.5))


class PostgresSearchRepository(SearchRepository):
    """Answers to what people type."""

    def _table(self, tx: Session, name: str, corner: Corner, known: Known) -> Table:
        return WordTable(tx, name, corner, known)

    async def _corner(self, tx: Session, within: Narrowed, known: Known) -> Corner:
        """Asked anew each time: numbers of chunks do not come in order where many write at once."""
        if not within:
            return Corner()
        pages = [row["id"] for row in await pages_within(tx, within)]
        row = await tx.one("count_chunks", pages=pages)
        return Corner(pages, row["number"] if row else 0, known.newest)

    async def _renewed_known(self, tx: Session) -> Known:
        before = self.caches.known
        known = await super()._renewed_known(tx)
        if known is not before:
            row = await tx.one("texts")
            known = Known(known.newest, known.configs, texts=row["number"] if row else 0)
            self.caches.known = known
        return known
