"""Search in PostgreSQL: full-text search with the same results as in SQLite, and vector search with pgvector."""

import json
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from afresh.errors import StoreError
from afresh.search.query import ROOM
from afresh.search.records import ChunkVectors, SearchFilter
from afresh.search.stemming import ENGLISH, WORD, snowball
from afresh.store.dialect import Database, Row, Transaction
from afresh.store.repository import Caches, RetryPolicy
from afresh.store.search import FtsTable, IndexStats, IndexSubset, SearchRepository, pages_within
from afresh.store.vectors import VectorRepository, check_size

if TYPE_CHECKING:
    from afresh.ports import Matrix
    from afresh.store.postgres import PostgresDatabase

MIN_INDEXED = 20_000  # vectors; fewer are compared exactly, in a few milliseconds
NO_PGVECTOR = (
    "keyword search only: this PostgreSQL has no pgvector 0.7 or newer; install it there, "
    "run `create extension vector` as its superuser, then `afresh reindex`"
)
WEIGHTS = {"title": "A", "heading": "B", "content": "D"}  # of the parts of a text
GAP = 8  # positions between two parts, so that no phrase spans them
MAX_WORDS = 16_000  # of each part; PostgreSQL has no more positions
MAX_PLACES = 255  # positions stored for each word
MAX_WORD_CHARS = 128  # the same limit as in queries
_ACCENTS = re.compile("[\u0300-\u036f]")
_TOKEN = re.compile(r'"([^"]*)"(\*?)|(AND)|(OR)|([()])')


def as_halfvec(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of `vectors` in the text format of pgvector."""
    import numpy as np

    return {**row, "vector": as_text(np.frombuffer(cast("bytes", row["vector"]), dtype="<f2"))}


def as_text(numbers: "Matrix") -> str:
    return "[" + ",".join(map(repr, numbers.tolist())) + "]"


class PostgresVectorRepository(VectorRepository):
    """Stores vectors in PostgreSQL; without pgvector, there are none."""

    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        super().__init__(db, caches, retry)
        self.no_vectors = None if db.has_vectors else NO_PGVECTOR

    async def keep(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Store vectors by the hash of their text, sorted to avoid deadlocks."""
        if self.no_vectors is not None:
            raise StoreError(self.no_vectors)
        await super().keep(model, dict(sorted(vectors.items())), now)

    async def nearest(self, model: str, vector: "Matrix", within: SearchFilter, limit: int) -> ChunkVectors:
        async with self.db.read() as tx:
            row = await self._model(tx, model)
            if row is None or not row["vector"]:
                return ChunkVectors.none()
            check_size(vector, row["dimensions"])
            pages = [each["id"] for each in await pages_within(tx, within)] if within else None
            asked = {"model": row["id"], "vector": as_text(vector[0]), "pages": pages, "limit": limit}
            name = "nearest_by_index" if await self._by_index(tx, row["id"], pages) else "nearest"
            found = await tx.all(name, dimensions=row["dimensions"], **asked)
            return await self._vectors(tx, row, found)

    async def _by_index(self, tx: Transaction, model: int, pages: Sequence[int] | None) -> bool:
        """Return whether to use the vector index: it is ready, and the search covers many chunks."""
        ready = await tx.one("near_index", model=model)
        if ready is None or not ready["ready"]:
            return False
        return pages is None or await tx.number("count_chunks", pages=pages) > MIN_INDEXED

    async def forget(self, before: datetime) -> int:
        """Delete vectors unused since a time and return their number; create a vector index if many are left."""
        forgotten = await super().forget(before)
        if self.no_vectors is None:
            await self._index_if_many()
        return forgotten

    async def _add(self, tx: Transaction, row: Row, vectors: Mapping[str, bytes], now: datetime) -> None:
        base = {"model": row["id"], "now": now}
        await tx.many("keep_vector", [{**base, "text_hash": key, "vector": each} for key, each in vectors.items()])

    async def _encode(self, tx: Transaction, blocks: Collection[int]) -> None:
        """Do nothing: pgvector compares the vectors themselves, so PostgreSQL stores no compact codes of them."""

    async def _index_if_many(self) -> None:
        async with self.db.read() as tx:
            row = await tx.one("many_vectors", most=MIN_INDEXED)
            if row is None or row["number"] < MIN_INDEXED:
                return
            index = await tx.one("near_index", model=row["id"])
            if index is not None and index["ready"]:
                return
        await cast("PostgresDatabase", self.db).index_vectors(row["id"], row["dimensions"])

    async def of_chunks(self, model: str, chunks: Sequence[int]) -> ChunkVectors:
        async with self.db.read() as tx:
            row = await self._model(tx, model)
            if row is None:
                return ChunkVectors.none()
            found = await tx.all("vectors_of_chunks", model=row["id"], chunks=list(chunks))
            return await self._vectors(tx, row, found)

    async def _model(self, tx: Transaction, model: str) -> Row | None:
        return None if self.no_vectors is not None else await tx.one("model_and_newest", name=model)

    async def _vectors(self, tx: Transaction, row: Row, found: Sequence[Row]) -> ChunkVectors:
        """Decode the vectors in `found`: big-endian 16-bit floats after a header of two 16-bit numbers."""
        import numpy as np

        if not found:
            return ChunkVectors.none()
        rows = np.array([np.frombuffer(each["vector"], ">f2", offset=4) for each in found], np.float32)
        return ChunkVectors(tuple(each["chunk"] for each in found), rows, await self._middle(tx, row))

    async def _middle(self, tx: Transaction, row: Row) -> "Matrix":
        """Return the mean of a model's vectors, or of the newest ones if there are many."""
        import numpy as np

        newest, middle = self.caches.middles.get(row["id"], (0, np.empty(0, dtype=np.float32)))
        if newest != row["vector"]:
            found = await tx.one("middle", model=row["id"])
            middle = np.array(found["vector"] if found else [], dtype=np.float32)
            self.caches.middles[row["id"]] = row["vector"], middle
        return middle


class WordTable(FtsTable):
    """Searches in one transaction; weights words by their rarity, because PostgreSQL does not."""

    @property
    def bound_by(self) -> int:
        """Return 0: the scores have no maximum, because PostgreSQL does not rank by BM25."""
        return 0

    async def find(
        self, statement: str, asked: Sequence[Mapping[str, object]], among: Sequence[str]
    ) -> Sequence[Sequence[Row]]:
        """Run a search statement for each set of parameters and return the rows; rare words in `among` count more."""
        english, texts = self.name == "english", self.known.text_count
        counts = await self._counts(among, 2 * ROOM) if among else ()
        weighed = {
            "matches": [query_of(each, english=english) for each in among],
            "worth": [math.log(1 + (max(texts, each) - each + 0.5) / (each + 0.5)) for each in counts],
        }
        queries = [{**each, "match": query_of(str(each["match"]), english=english)} for each in asked]
        return await self.tx.each(statement, [{**each, **weighed} for each in queries])


class PostgresSearchRepository(SearchRepository):
    table = WordTable

    async def _subset(self, tx: Transaction, within: SearchFilter, known: IndexStats) -> IndexSubset:
        """Return the index part in a filter, uncached: chunks with ids below the newest may be committed later."""
        if not within:
            return IndexSubset()
        pages = [row["id"] for row in await pages_within(tx, within)]
        return IndexSubset(pages, await tx.number("count_chunks", pages=pages), known.newest_chunk)

    async def _renewed_known(self, tx: Transaction) -> IndexStats:
        before = self.caches.known
        known = await super()._renewed_known(tx)
        if known is not before:
            known = IndexStats(known.newest_chunk, known.configs, text_count=await tx.number("texts"))
            self.caches.known = known
        return known


def lexemes(text: str, *, english: bool) -> list[str]:
    """Return the words of a text in order, in lower case and without accents; if `english`, stemmed."""
    text = text.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    words = [word[:MAX_WORD_CHARS] for word in WORD.findall(text)]
    if not english:
        return words
    stems = zip(snowball("porter")(words), words, strict=True)
    return [stem or word for stem, word in stems]  # the stem of `s` is empty


def vector_of(parts: Sequence[tuple[str, str]], *, english: bool) -> str:
    places: dict[str, list[str]] = defaultdict(list)
    begin = 1
    for text, weight in parts:
        words = lexemes(text, english=english)[:MAX_WORDS]
        for at, word in enumerate(words, begin):
            places[word].append(f"{at}{weight}")
        begin += len(words) + GAP
    return " ".join(f"'{word}':{','.join(found[:MAX_PLACES])}" for word, found in places.items())


def query_of(expression: str, *, english: bool) -> str:
    """Return the tsquery for an FTS5 expression of `search/query.py`."""
    found = []
    for token in _TOKEN.finditer(expression):
        phrase, star, both, either, _ = token.groups()
        if phrase is not None:
            joined = " <-> ".join(f"'{word}'" for word in lexemes(phrase, english=english))
            found.append(f"({joined}{':*' if star else ''})")
        else:
            found.append("&" if both else "|" if either else token[0])
    return " ".join(found)


def with_words(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of `chunks` with a tsvector, made from its `terms` (words in the forms to index) or its text."""
    terms = json.loads(str(row["terms"])) if row["terms"] else (None, None, None)
    own = zip(WEIGHTS.items(), terms, strict=True)
    parts = [(str(term or row[name]), weight) for (name, weight), term in own if name in row]
    return {**row, "words": vector_of(parts, english=row["config"] == ENGLISH)}
