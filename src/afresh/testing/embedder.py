"""Provide an embedder that hashes words instead of using a model, and fails on request."""

import asyncio
import re
import zlib
from collections.abc import Sequence
from enum import Enum

from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.ports import Matrix

_WORD = re.compile(r"\w+")


class EmbedderFault(Enum):
    FAIL = "fail"  # raises EmbedError
    DOWN = "down"  # raises EmbedderUnavailable
    HANG = "hang"  # waits until it is cancelled
    NAN = "nan"
    ZEROS = "zeros"
    FEWER = "fewer"  # returns one vector less than there are texts
    WIDER = "wider"  # returns vectors of another dimension


class FakeEmbedder:
    """Implements `ports.Embedder`: texts that share words have similar vectors."""

    def __init__(
        self, model: str = "fake/words/1", *, dimension: int = 64, troubles: "dict[int, EmbedderFault] | None" = None
    ) -> None:
        self.model = model
        self.dimension = dimension
        self.troubles = dict(troubles or {})  # number of a call of `embed`, from 1 → its fault
        self.always: EmbedderFault | None = None  # failure of all calls that are not in `troubles`
        self.calls = 0
        self.texts: list[str] = []  # all embedded texts, in the order of the calls
        self.queries: list[str] = []
        self.hanging = asyncio.Event()  # is set while a call hangs
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> Matrix:
        self.calls += 1
        self.texts.extend(texts)
        rows = self._rows(texts)
        match self.troubles.get(self.calls, self.always):
            case EmbedderFault.FAIL:
                raise EmbedError("the fake embedder was told to fail")
            case EmbedderFault.DOWN:
                raise EmbedderUnavailable("the fake embedder was told to be down")
            case EmbedderFault.HANG:
                self.hanging.set()
                await asyncio.Event().wait()
            case EmbedderFault.NAN:
                rows[:1] = float("nan")
            case EmbedderFault.ZEROS:
                rows[:1] = 0.0
            case EmbedderFault.FEWER:
                rows = rows[1:]
            case EmbedderFault.WIDER:
                rows = self._rows(texts, self.dimension + 1)
        return rows

    async def embed_query(self, text: str) -> Matrix:
        """Embed a query; the scripted faults affect only `embed`."""
        self.queries.append(text)
        return self._rows([text])

    async def close(self) -> None:
        self.closed = True

    def _rows(self, texts: Sequence[str], dimension: int | None = None) -> Matrix:
        import numpy as np

        rows = np.zeros((len(texts), dimension or self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(text.lower()) or [""]:
                seed = zlib.crc32(word.encode("utf-8", "replace"))
                row[seed % len(row)] += 1.0 if seed & 0x10000 else -1.0
            if not row.any():
                row[0] = 1.0
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows
