"""Vectors of chunks in the store.

A search selects candidates by the compact codes of vectors, and then compares the vectors of these candidates exactly.
Results come only from chunks that exist and belong to the searched subset. So a missing or outdated code can hide a
result, but never adds a wrong one.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from afresh.errors import EmbedError
from afresh.model.fetch import Chunk
from afresh.model.records import SourceId
from afresh.search.records import ChunkVectors, SearchFilter, StoredModel
from afresh.store.compact import BLOCK, CodeBlock, VectorCodes, VectorSubset, blocks_of, is_whole
from afresh.store.dialect import Row, Transaction
from afresh.store.records import record
from afresh.store.repository import Repository
from afresh.store.search import chunk_from, pages_within

if TYPE_CHECKING:
    from afresh.ports import Matrix
    from afresh.store.compact import Ids

CANDIDATES = 1_000  # vectors to compare exactly
MOST = 0.8  # share of the compared vectors that have to be there and in use
READ_BLOCKS = 32  # whose vectors are read at a time
OTHER_LENGTH = (
    "set embedding.dimensions to the new length (remote providers only), or choose another embedding.model; "
    "then run `afresh reindex`, which computes all vectors again"
)


class VectorRepository(Repository):
    no_vectors: str | None = None  # why vectors cannot be compared in this store

    async def is_first_notice(self, name: str, now: datetime) -> bool:
        """Record that a notice was shown; return whether it is the first time in this store."""
        if await self._one("notice", name=name) is not None:
            return False
        return await self._run("record_notice", name=name, now=now) > 0

    async def serving_model(self) -> StoredModel | None:
        return await self._find(partial(record, StoredModel), "serving_model")

    async def known(self, model: str, hashes: Sequence[str]) -> set[str]:
        async with self.db.read() as tx:
            return {row["text_hash"] for row in await tx.all("known_vectors", name=model, hashes=list(hashes))}

    async def keep(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Store vectors by the hash of their text; in an empty store, their model becomes the serving model."""
        sizes = {len(vector) // 2 for vector in vectors.values()}  # numbers of 16 bits
        if not sizes:
            return
        async with self.db.write() as tx:
            rows = await tx.all("model_and_newest", name=model)
            if not rows:
                await tx.run("add_model", name=model, dimensions=min(sizes), now=now)
                rows = await tx.all("model_and_newest", name=model)
            [row] = rows
            if sizes != {row["dimensions"]}:
                raise EmbedError(
                    f"{model} gave vectors of {max(sizes)} numbers, but its stored vectors have {row['dimensions']}: "
                    + OTHER_LENGTH
                )
            await self._add(tx, row, vectors, now)

    async def _add(self, tx: Transaction, row: Row, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Add vectors of the model in `row`; compute the compact codes of each block of vectors that is now full."""
        import numpy as np

        packed = pack_rows(np.frombuffer(b"".join(vectors.values()), "<f2").reshape(-1, row["dimensions"]))
        base = {"model": row["id"], "now": now}
        rows = [{**base, "text_hash": key, "vector": vector} for key, vector in zip(vectors, packed, strict=True)]
        await tx.many("keep_vector", rows)
        [after] = await tx.all("newest_vector")
        begun, full = row["vector"] // BLOCK, after["newest"] // BLOCK
        if begun < full or not row["coded"]:
            await self._encode(tx, range(begun, full))

    async def forget(self, before: datetime) -> int:
        """Delete vectors unused since a time and return their number; delete none while a run is in progress."""
        async with self.db.write() as tx:
            gone = await tx.all("forget_vectors", before=before)
            await self._encode(tx, {row["id"] // BLOCK for row in gone})
            return len(gone)

    async def encode(self) -> None:
        """Compute the compact codes of all vectors for models without codes, as after a migration or a copy."""
        async with self.db.write() as tx:
            await self._encode(tx, ())

    async def _encode(self, tx: Transaction, blocks: Collection[int]) -> None:
        """Compute the compact codes of the vectors in these blocks again, and all codes of models without codes."""
        for row in await tx.all("models_and_newest"):
            # codes of the last block are not stored, because each batch adds vectors to it; a search computes them
            full = row["vector"] // BLOCK
            numbers = sorted(blocks) if row["coded"] else range(full)
            for at in range(0, len(numbers), READ_BLOCKS):
                part = list(numbers[at : at + READ_BLOCKS])
                rows = await tx.all("vectors_of_blocks", model=row["id"], blocks=[n for n in part if n < full])
                found = blocks_of([each["id"] for each in rows], decoded(rows, row["dimensions"]))
                await tx.run("drop_blocks", model=row["id"], blocks=part)
                await tx.many("add_block", [{"model": row["id"], **each._asdict()} for each in found])
            if not row["coded"]:
                await tx.run("mark_coded", model=row["id"])

    async def unembedded(
        self, model: str, *, source: SourceId | None = None, after: int = 0, limit: int = 1000
    ) -> dict[int, Chunk]:
        """Return chunks with stored text but without a vector of the model, by id and in order."""
        async with self.db.read() as tx:
            number = await tx.number("model_by_name", name=model)
            rows = await tx.all("unembedded", model=number, source=source, after=after, limit=limit)
            return {row["id"]: chunk_from(row) for row in rows}

    async def are_missing(self, model: str) -> bool:
        """Return whether any chunk lacks a vector of a model."""
        async with self.db.read() as tx:
            number = await tx.number("model_by_name", name=model)  # 0: it has no vectors yet
            return await tx.one("lacks_vectors", model=number) is not None

    async def serve(self, model: str) -> bool:
        """Make a model the serving model and delete all other models; return False if vectors of it are missing.

        In a store without vectors, all models are deleted: the first model to store a vector becomes the serving model.
        """
        async with self.db.write() as tx:
            number = await tx.number("model_by_name", name=model)
            if await tx.number("unembedded_number", model=number):
                return False
            await tx.run("drop_other_models", model=number)
            await tx.run("serve_model", model=number)
            return True

    async def nearest(self, model: str, vector: "Matrix", within: SearchFilter, limit: int) -> ChunkVectors:
        async with self.db.read() as tx:
            codes = await self._codes(tx, model)
            if codes is None or not len(codes):
                return ChunkVectors.none()
            check_size(vector, codes.dimensions)
            subset = await self._subset(tx, model, codes, within)
            return await self._compare(tx, codes, vector, subset, limit)

    async def _subset(self, tx: Transaction, model: str, codes: VectorCodes, within: SearchFilter) -> VectorSubset:
        """Return the vectors that a filter selects; cache them if the filter names only sources."""
        if not within:
            return VectorSubset()
        row = await tx.only("model_and_newest", name=model)
        newest = row["vector"], row["chunk"]
        subset = codes.subsets.get(within)
        if subset is not None and subset.newest == newest:
            return subset
        pages = [each["id"] for each in await pages_within(tx, within)]
        number = await tx.number("count_chunks", pages=pages)
        if number**2 <= CANDIDATES * len(codes):
            subset = VectorSubset(newest, pages, await _vectors_of(tx, codes, pages))
        else:
            subset = VectorSubset(newest, pages, None, max(1, len(codes) // number))
        if not within.by_page:
            codes.subsets[within] = subset
        return subset

    async def _compare(
        self, tx: Transaction, codes: VectorCodes, vector: "Matrix", subset: VectorSubset, limit: int
    ) -> ChunkVectors:
        """Return the chunks of the nearest vectors, nearest first.

        The vectors that are nearest by their codes are the candidates, which are compared exactly. If many candidates
        were deleted, or too few of the nearest belong to chunks of `subset`, the search is repeated: first among the
        vectors of the subset alone (unless it is the whole store), then with four times as many candidates each time.
        """
        name = "chunks_of_vectors" if subset.pages is None else "chunks_of_vectors_within"
        where = {} if subset.pages is None else {"pages": subset.pages}
        compared, checked = CANDIDATES * subset.rarity, limit * subset.rarity * 5 // 4
        enough = MOST * compared
        while True:
            ids = sorted((await asyncio.to_thread(codes.nearest, vector, compared, subset.ids)).tolist())
            rows = await tx.all("vectors_by_id", vectors=ids)
            vectors = decoded(rows, codes.dimensions)
            farness = -(vectors @ vector[0])
            near = {rows[at]["id"]: at for at in farness.argsort(kind="stable")[:checked].tolist()}
            found = await tx.all(name, vectors=list(near), **where)
            if min(compared, checked) >= (len(codes) if subset.ids is None else len(subset.ids)):
                break
            if len(rows) >= enough and len({row["id"] for row in found}) >= limit:
                break
            if subset.pages is not None and subset.ids is None:  # its texts are not among the nearest
                subset = subset._replace(ids=await _vectors_of(tx, codes, subset.pages))
                compared, checked, enough = CANDIDATES, limit * 5 // 4, MOST * CANDIDATES
            else:
                compared, checked = 4 * compared, 4 * checked
        best = sorted((farness[near[row["id"]]], row["chunk"], near[row["id"]]) for row in found)[:limit]
        return ChunkVectors(tuple(chunk for _, chunk, _ in best), vectors[[at for *_, at in best]], codes.middle)

    async def of_chunks(self, model: str, chunks: Sequence[int]) -> ChunkVectors:
        """Return the vectors of chunks, without chunks that have none."""
        async with self.db.read() as tx:
            codes = await self._codes(tx, model)
            if codes is None:
                return ChunkVectors.none()
            rows = await tx.all("vectors_of_chunks", model=codes.model, chunks=list(chunks))
            return ChunkVectors(tuple(row["chunk"] for row in rows), decoded(rows, codes.dimensions), codes.middle)

    async def _codes(self, tx: Transaction, model: str) -> VectorCodes | None:
        """Return the compact codes of a model from memory, after adding those of new vectors; None: unknown model."""
        async with self.caches.renewing:  # a later reader must not see an older state
            row = await tx.one("model_and_newest", name=model)
            if row is None:
                return None
            codes = self.caches.codes
            if codes is None or codes.model != row["id"]:  # deleted models are never created again with this id
                codes = VectorCodes(row["id"], row["dimensions"])
            if codes.newest != row["vector"]:
                codes.subsets.clear()
                codes.put(await self._blocks(tx, row, codes.newest // BLOCK))
                codes.newest = row["vector"]
            self.caches.codes = codes
            return codes

    async def _blocks(self, tx: Transaction, row: Row, first: int) -> Iterable[CodeBlock]:
        """Return the blocks of codes from number `first` on; compute the last, or all if a stored one is damaged."""
        blocks, full = list[CodeBlock](), row["vector"] // BLOCK
        if row["coded"] and first < full:
            blocks = [
                record(CodeBlock, each)
                for each in await tx.all("blocks_between", model=row["id"], first=first, full=full)
            ]
        if row["coded"] and is_whole(blocks, row["dimensions"]):
            first = max(first, full)
        else:
            blocks = []
        rows = await tx.all("vectors_after", model=row["id"], after=first * BLOCK - 1)
        return [*blocks, *blocks_of([each["id"] for each in rows], decoded(rows, row["dimensions"]))]


async def _vectors_of(tx: Transaction, codes: VectorCodes, pages: Sequence[int]) -> "Ids":
    import numpy as np

    rows = await tx.all("vectors_of_pages", model=codes.model, pages=pages)
    return np.array([row["id"] for row in rows], np.int64)


def pack_rows(rows: "Matrix") -> list[bytes]:
    import numpy as np

    wide = rows.astype(np.float32)
    scaled = wide * (127 / np.abs(wide).max(axis=1, keepdims=True))
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


def unpack_rows(blobs: Sequence[bytes], dimensions: int) -> "Matrix":
    """Return packed vectors as the rows of a matrix, each scaled to the length 1."""
    import numpy as np

    rows = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), dimensions).astype(np.float32)
    found: Matrix = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return found


def decoded(rows: Sequence[Row], dimensions: int) -> "Matrix":
    return unpack_rows([row["vector"] for row in rows], dimensions)


def check_size(vector: "Matrix", dimensions: int) -> None:
    if vector.shape[1] != dimensions:
        raise EmbedError(
            f"vectors of the model have {vector.shape[1]} numbers now, but the stored vectors have {dimensions}: "
            + OTHER_LENGTH
        )
