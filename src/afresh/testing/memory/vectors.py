"""Vectors by model and text, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from afresh.core.asking import Narrowed
from afresh.core.embedding import Cut, Lack, Model, Wanting
from afresh.core.errors import EmbedError
from afresh.core.found import Near, Nearest
from afresh.core.looks import Validators
from afresh.core.model import Held, Page, PageId, RunState, SourceId
from afresh.core.sketch import sketch_of
from afresh.testing.memory.narrowing import pages_within
from afresh.testing.memory.tables import Piece, Tables

if TYPE_CHECKING:
    from afresh.ports import Matrix


class MemoryVectors:
    """What the models made of the chunks' texts; vectors of two models never meet."""

    tables: Tables

    async def serving_model(self) -> Model | None:
        """The model that answers searches."""
        return next((model for model in self.tables.models.values() if model.serving), None)

    async def known_vectors(self, model: str, hashes: Sequence[str]) -> set[str]:
        """Those of the texts that the model has a vector for."""
        return {key for key in hashes if (model, key) in self.tables.vectors}

    async def keep_vectors(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Remember vectors by the hash of their text; the first model of an empty store serves."""
        sizes = {len(vector) // 2 for vector in vectors.values()}
        if not sizes:
            return
        first = not self.tables.models and not any(self.tables.pieces.values())
        new = Model(name=model, dimensions=min(sizes), serving=first)
        known = self.tables.models.get(model, new)
        if sizes != {known.dimensions}:
            raise EmbedError(f"{model} gave vectors of {max(sizes)} numbers, not {known.dimensions}")
        self.tables.models[model] = known
        for key, vector in vectors.items():
            self.tables.vectors.setdefault((model, key), vector)
            self.tables.used[key] = now

    async def forget_vectors(self, before: datetime) -> int:
        """Let go of vectors whose text no chunk has, none since a time; not while a run may want them."""
        if any(run.state is RunState.RUNNING for run in self.tables.runs.values()):
            return 0
        texts = {piece.chunk.text_hash for _, piece in self._pieces()}
        old = [
            each
            for each in self.tables.vectors
            if each[1] not in texts and self.tables.used[each[1]] < before
        ]
        for each in old:
            del self.tables.vectors[each]
        return len(old)

    async def unembedded(
        self, model: str, *, source: SourceId | None = None, after: int = 0, limit: int = 1000
    ) -> list[Wanting]:
        """Chunks with a text of which the model made no vector yet, in their order."""
        lacking = sorted((piece for piece in self._lacking(model, source) if piece.whole), key=lambda p: p.id)
        return [
            Wanting(p.id, p.chunk.text_hash, p.chunk.path, p.chunk.content) for p in lacking if p.id > after
        ][:limit]

    async def lacks_vectors(self, model: str) -> bool:
        """Whether any chunk lacks a vector of a model."""
        return bool(self._lacking(model, None))

    async def lack(self, model: str, source: SourceId | None = None) -> Lack:
        """How much is missing until the model can serve."""
        lacking = self._lacking(model, source)
        return Lack(len(lacking), sum(not piece.whole for piece in lacking))

    async def serve(self, model: str) -> bool:
        """Let a model answer searches from now on and forget all others; False while chunks lack vectors.

        An empty store forgets all models: the first that makes a vector for it serves.
        """
        if self._lacking(model, None):
            return False
        models = [each for each in self.tables.models.values() if each.name == model]
        self.tables.models = {each.name: replace(each, serving=True) for each in models}
        self.tables.vectors = {key: v for key, v in self.tables.vectors.items() if key[0] == model}
        return True

    async def nearest(self, model: str, vector: "Matrix", within: Narrowed, limit: int) -> Nearest:
        """The chunks whose meaning is nearest, the nearest first."""
        wanted = pages_within(self.tables, within)
        placed = [piece.id for page, piece in self._pieces() if page in wanted]
        found = await self.likeness(model, vector, placed)
        return found._replace(chunks=found.chunks[:limit])

    async def likeness(self, model: str, vector: "Matrix", chunks: Sequence[int]) -> Nearest:
        """How near some chunks are, the nearest first."""
        import numpy as np

        vectors = {
            key: np.frombuffer(vector, "<f2").astype(np.float32)
            for (maker, key), vector in self.tables.vectors.items()
            if maker == model
        }
        texts = {piece.id: piece.chunk.text_hash for _, piece in self._pieces() if piece.id in set(chunks)}
        found = [
            Near(chunk, float(vectors[key] @ vector[0])) for chunk, key in texts.items() if key in vectors
        ]
        if not found:
            return Nearest()
        middle = sum(float(each @ vector[0]) for each in vectors.values()) / len(vectors)
        return Nearest(tuple(sorted(found, key=lambda near: -near.likeness)), middle)

    async def vectors_of(self, model: str, chunks: Sequence[int]) -> "Matrix":
        """The vectors of some chunks, as far as there are any."""
        import numpy as np

        by_number = {piece.id: piece.chunk.text_hash for _, piece in self._pieces()}
        keys = [(model, by_number[chunk]) for chunk in chunks if chunk in by_number]
        rows = [np.frombuffer(self.tables.vectors[key], "<f2") for key in keys if key in self.tables.vectors]
        return np.array(rows, dtype=np.float32)

    async def cut_by_others(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> list[Cut]:
        """Pages with a text whose chunks another version cut, in their order."""
        found = [
            Cut(page, markdown)
            for page in self._cut_by_others(chunker, source)
            if page.id > after and (markdown := self.tables.documents[page.id].markdown) is not None
        ]
        return found[:limit]

    async def count_cut_by_others(self, chunker: str, source: SourceId | None = None) -> Lack:
        """How many pages another version cut, and how many of them have no text to cut anew."""
        pages = self._cut_by_others(chunker, source)
        return Lack(len(pages), sum(self.tables.documents[page.id].markdown is None for page in pages))

    async def recut(self, cuts: Sequence[Cut], chunker: str, now: datetime) -> int:
        """Swap the chunks of pages that are as they were when they were cut; the answer is how many were."""
        same = [cut for cut in cuts if self._is_as_it_was(cut)]
        for page, _, chunks in same:
            self.tables.swap_pieces(page, chunks, now, keep_body=True)
            self.tables.change_page(page.id, chunker=chunker)
        return len(same)

    async def restore(self, cut: Cut, before: Page, now: datetime) -> bool:
        """Put a former text with its chunks in the place of what a page shows; False if that changed."""
        page = cut.page
        if not self._is_as_it_was(cut._replace(page=before)):
            return False
        self.tables.swap_pieces(page, cut.chunks, now, keep_body=True)
        sketch, length = sketch_of(cut.markdown), len(cut.markdown)
        self.tables.documents[page.id] = Held(markdown=cut.markdown, sketch=sketch, length=length)
        names = ("title", "content_hash", "refused_hash", "doubt", "chunker")
        values = {name: getattr(page, name) for name in names}
        none = {"doubt_hash": None, "doubt_run": None, "validators": Validators()}
        self.tables.change_page(page.id, changed_at=now, **values, **none)
        return True

    def _is_as_it_was(self, cut: Cut) -> bool:
        row = self.tables.pages.get(cut.page.id)
        return row is not None and row.page.content_hash == cut.page.content_hash

    def _cut_by_others(self, chunker: str, source: SourceId | None) -> list[Page]:
        pages = [self.tables.pages[number].page for number in sorted(self.tables.pieces)]
        return [page for page in pages if page.chunker != chunker and source in (None, page.source_id)]

    def _pieces(self) -> list[tuple[PageId, Piece]]:
        return [(page, piece) for page, pieces in self.tables.pieces.items() for piece in pieces]

    def _lacking(self, model: str, source: SourceId | None) -> list[Piece]:
        return [
            piece
            for page, piece in self._pieces()
            if source in (None, self.tables.pages[page].page.source_id)
            and (model, piece.chunk.text_hash) not in self.tables.vectors
        ]
