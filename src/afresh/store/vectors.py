"""Vectors of chunks in the store."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from afresh.errors import EmbedError
from afresh.model.records import SourceId
from afresh.search.request import Narrowed
from afresh.search.results import Nearest
from afresh.search.vectors import Model, Wanting
from afresh.store.dialect import Row, Session
from afresh.store.narrowing import pages_within
from afresh.store.nearby import Nearby

if TYPE_CHECKING:
    from afresh.ports import Matrix
from afresh.store.repository import Repository

BYTES = 2  # a number of a vector is a float16


class VectorRepository(Repository):
    """Keep vectors and find the nearest."""

    no_vectors: str | None = None  # why vectors cannot be compared in this store

    async def is_first_notice(self, name: str, now: datetime) -> bool:
        """Return whether a notice is new for this store, and remember it."""
        async with self.db.read() as tx:
            if await tx.one("notice", name=name) is not None:
                return False
        async with self.db.write() as tx:
            return await tx.run("record_notice", name=name, now=now) > 0

    async def serving_model(self) -> Model | None:
        """The model that answers searches."""
        async with self.db.read() as tx:
            row = await tx.one("serving_model")
            return _model(row) if row else None

    async def known(self, model: str, hashes: Sequence[str]) -> set[str]:
        """Those of the texts that the model has a vector for."""
        async with self.db.read() as tx:
            row = await tx.one("model_by_name", name=model)
            if row is None:
                return set()
            rows = await tx.all("known_vectors", model=row["id"], hashes=list(hashes))
            return {each["text_hash"] for each in rows}

    async def keep(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Remember vectors by the hash of their text; the first model of an empty store serves."""
        sizes = {len(vector) // BYTES for vector in vectors.values()}
        if not sizes:
            return
        async with self.db.write() as tx:
            row = await _model_row(tx, model, min(sizes), now)
            if sizes != {row["dimensions"]}:
                raise EmbedError(
                    f"{model} gave vectors of {max(sizes)} numbers, but its vectors on record have "
                    f"{row['dimensions']}; name it otherwise or use another model, then run `afresh reindex`"
                )
            made = [{"model": row["id"], "text_hash": h, "vector": v, "now": now} for h, v in vectors.items()]
            await tx.many("keep_vector", made)

    async def forget(self, before: datetime) -> int:
        """Let go of vectors whose text no chunk has, none since a time; not while a run may want them."""
        async with self.db.write() as tx:
            return await tx.run("forget_vectors", before=before)

    async def unembedded(
        self, model: str, *, source: SourceId | None = None, after: int = 0, limit: int = 1000
    ) -> list[Wanting]:
        """Chunks with a text of which the model made no vector yet, in their order."""
        async with self.db.read() as tx:
            number = await model_number(tx, model)
            rows = await tx.all("unembedded", model=number, source=source, after=after, limit=limit)
            return [_wanting(row) for row in rows]

    async def are_missing(self, model: str) -> bool:
        """Whether any chunk lacks a vector of a model; answered by indexes alone."""
        async with self.db.read() as tx:
            return await tx.one("lacks_vectors", model=await model_number(tx, model)) is not None

    async def serve(self, model: str) -> bool:
        """Let a model answer searches from now on and forget all others; False while chunks lack vectors.

        An empty store forgets all models: the first that makes a vector for it serves.
        """
        async with self.db.write() as tx:
            number = await model_number(tx, model)
            row = await tx.one("unembedded_counts", model=number, source=None)
            if row and row["missing"]:
                return False
            await tx.run("drop_other_models", model=number)
            await tx.run("serve_model", model=number)
            return True

    async def nearest(self, model: str, vector: "Matrix", within: Narrowed, limit: int) -> Nearest:
        """The chunks whose meaning is nearest, the nearest first."""
        async with self.db.read() as tx:
            nearby = await self._renewed(tx, model)
            if nearby is None:
                return Nearest()
            pages = [row["id"] for row in await pages_within(tx, within)] if within else None
        return await nearby.nearest(vector, pages, limit)

    async def likeness(self, model: str, vector: "Matrix", chunks: Sequence[int]) -> Nearest:
        """How near some chunks are, the nearest first."""
        return (await self._near(model)).likeness(vector, chunks)

    async def of_chunks(self, model: str, chunks: Sequence[int]) -> "Matrix":
        """The vectors of some chunks, as far as there are any."""
        return (await self._near(model)).of(chunks)

    async def _near(self, model: str) -> Nearby:
        """The vectors as they were last read; candidates come from there."""
        if model not in self.caches.matrices:
            async with self.db.read() as tx:
                return await self._renewed(tx, model) or Nearby()
        return self.caches.matrices[model][1]

    async def _renewed(self, tx: Session, model: str) -> Nearby | None:
        async with self.caches.renewing:  # who reads later must not see an older state
            return await self._renewed_alone(tx, model)

    async def _renewed_alone(self, tx: Session, model: str) -> Nearby | None:
        row = await tx.one("model_and_newest", name=model)
        if row is None:
            self.caches.matrices.pop(model, None)
            return None
        number, nearby = self.caches.matrices.get(model, (0, Nearby()))
        if number != row["id"]:  # made, forgotten and made again
            nearby = Nearby()
        self.caches.matrices.clear()  # one model answers at a time
        self.caches.matrices[model] = row["id"], nearby
        await nearby.renew(tx, row)
        return nearby


async def _model_row(tx: Session, model: str, dimensions: int, now: datetime) -> Row:
    row = await tx.one("model_by_name", name=model)
    if row is None:
        await tx.run("add_model", name=model, dimensions=dimensions, now=now)
        row = await tx.one("model_by_name", name=model)
    if row is None:
        raise AssertionError("a model was just added")
    return row


async def model_number(tx: Session, model: str) -> int:
    """The number of a model, 0 if it made nothing yet."""
    row = await tx.one("model_by_name", name=model)
    return int(row["id"]) if row else 0


def _model(row: Row) -> Model:
    return Model(name=row["name"], dimensions=row["dimensions"], serving=bool(row["serving"]))


def _wanting(row: Row) -> Wanting:
    return Wanting(row["id"], row["text_hash"], tuple(json.loads(row["metadata"])["path"]), row["content"])
