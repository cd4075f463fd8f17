"""An embedder without a model: a bag of words in a few numbers, with troubles on demand."""

import asyncio
import re
import zlib
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from afresh.errors import EmbedderDown, EmbedError

if TYPE_CHECKING:
    from afresh.ports import Matrix

_WORD = re.compile(r"\w+")


class Trouble(Enum):
    """What an embedder may do instead of its work."""

    FAIL = "fail"  # refuses these texts
    DOWN = "down"  # refuses any text
    HANG = "hang"  # waits until it is cancelled
    NAN = "nan"
    ZEROS = "zeros"
    FEWER = "fewer"  # one vector less than texts
    WIDER = "wider"  # vectors of another dimension


class FakeEmbedder:
    """Fulfils `ports.Embedder`: texts that share words are near each other, the same text is the same vector.

    `troubles` maps the number of a call to `embed`, from 1, to what happens then. What it returns in trouble
    breaks the promise of the port on purpose.
    """

    def __init__(
        self,
        model: str = "fake/words/1",
        *,
        dimension: int = 64,
        troubles: "dict[int, Trouble] | None" = None,
    ) -> None:
        self.model = model
        self.dimension = dimension
        self.troubles = dict(troubles or {})
        self.always: Trouble | None = None  # what happens at every call that `troubles` does not name
        self.calls = 0
        self.texts: list[str] = []  # every text that was embedded, in order
        self.queries: list[str] = []
        self.hanging = asyncio.Event()  # set while a call hangs
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """One row for each text, or the trouble that is due."""
        self.calls += 1
        self.texts.extend(texts)
        rows = self._rows(texts)
        match self.troubles.get(self.calls, self.always):
            case Trouble.FAIL:
                raise EmbedError("the fake embedder was told to fail")
            case Trouble.DOWN:
                raise EmbedderDown("the fake embedder was told to be down")
            case Trouble.HANG:
                self.hanging.set()
                await asyncio.Event().wait()
            case Trouble.NAN:
                rows[:1] = float("nan")
            case Trouble.ZEROS:
                rows[:1] = 0.0
            case Trouble.FEWER:
                rows = rows[1:]
            case Trouble.WIDER:
                rows = self._rows(texts, self.dimension + 1)
        return rows

    async def embed_query(self, text: str) -> "Matrix":
        """The row of a question; troubles do not touch it."""
        self.queries.append(text)
        return self._rows([text])

    async def close(self) -> None:
        """Remember that the owner closed it."""
        self.closed = True

    def _rows(self, texts: Sequence[str], dimension: int | None = None) -> "Matrix":
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
