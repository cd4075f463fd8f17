"""Models in this process: no key, loaded when first asked, work done in threads off the event loop."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from afresh.errors import EmbedError

if TYPE_CHECKING:
    from afresh.ports import Matrix


class Rows(Protocol):
    """A loaded model."""

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """One row of length 1 for each text; quickest where texts are of about one length."""
        ...


class LocalEmbedder:
    """Fulfils `ports.Embedder` with a model that `load` brings into this process."""

    def __init__(self, model: str, load: Callable[[], Rows], *, batch_size: int) -> None:
        self.model = model
        self._load = load
        self._most = batch_size

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """One row for each text; a batch at a time, so that a stop is heard in between."""
        import numpy as np

        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        parts = [order[at : at + self._most] for at in range(0, len(order), self._most)]
        found = [await asyncio.to_thread(self._rows, [texts[at] for at in part], False) for part in parts]
        if not found:
            return np.zeros((0, 1), np.float32)
        rows = np.empty((len(texts), found[0].shape[1]), np.float32)
        rows[order] = np.concatenate(found)
        return rows

    async def embed_query(self, text: str) -> "Matrix":
        """The row of a question."""
        return await asyncio.to_thread(self._rows, [text], True)

    async def close(self) -> None:
        """Nothing: a loaded model stays for the life of the process."""

    def _rows(self, texts: Sequence[str], query: bool) -> "Matrix":
        model = self._load()
        try:
            return model.rows(texts, query=query)
        except EmbedError:
            raise
        except Exception as error:
            raise EmbedError(f"{self.model} could not read a text ({type(error).__name__})") from error


def loaded_once(load: Callable[[], Rows]) -> Callable[[], Rows]:
    """The same load, done once whichever thread asks first; a load that failed is tried anew."""
    lock = threading.Lock()
    held: list[Rows] = []

    def get() -> Rows:
        with lock:
            if not held:
                held.append(load())
            return held[0]

    return get
