"""Run models in this process, ours and those of other libraries: loaded on first use, run in threads."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.models.vectors import checked

if TYPE_CHECKING:
    from afresh.ports import Matrix


Encode = Callable[[list[str], bool], object]  # texts, and whether they are queries, to rows of numbers


class EmbeddingModel(Protocol):
    """A loaded model."""

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """Return one row of length 1 for each text; fastest for texts of similar length."""
        ...


class LocalEmbedder:
    """Implements `ports.Embedder` with a model that `load` loads into this process."""

    def __init__(self, model: str, load: Callable[[], EmbeddingModel], *, batch_size: int) -> None:
        self.model = model
        self._load = load
        self._most = batch_size

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """Return one row for each text, computed in batches, so that a stop takes effect in between."""
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
        """Return the row of a query."""
        return await asyncio.to_thread(self._rows, [text], True)

    async def close(self) -> None:
        """Do nothing: a loaded model stays for the life of the process."""

    def _rows(self, texts: Sequence[str], query: bool) -> "Matrix":
        model = self._load()
        try:
            return model.rows(texts, query=query)
        except EmbedError:
            raise
        except Exception as error:
            raise EmbedError(f"{self.model} could not read a text ({type(error).__name__})") from error


def loaded_once(load: Callable[[], EmbeddingModel]) -> Callable[[], EmbeddingModel]:
    """Return a thread-safe version of `load` that loads once; a failed load is tried again."""
    lock = threading.Lock()
    held: list[EmbeddingModel] = []

    def get() -> EmbeddingModel:
        with lock:
            if not held:
                held.append(load())
            return held[0]

    return get


class LibraryModel:
    """Implements `EmbeddingModel` with a model of another library, which downloads it on first use."""

    def __init__(self, library: str, model: str, prefixes: tuple[str, str] = ("", "")) -> None:
        try:
            load = _fastembed() if library == "fastembed" else _sentence_transformers()
        except ImportError:
            fix = f"pip install 'afresh[{library}]'"
            raise EmbedderUnavailable(f"embedding.provider: {library} needs its library: {fix}") from None
        try:
            self._encode = load(model)
        except Exception as error:
            raise EmbedderUnavailable(
                f"{library} cannot load {model} ({type(error).__name__}): check embedding.model and whether "
                "it may be downloaded"
            ) from error
        self._library = library
        self._prefixes = prefixes
        self._dimension: int | None = None

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """Return one row of length 1 for each text."""
        found = self._encode([self._prefixes[query] + text for text in texts], query)
        rows = checked(found, len(texts), self._dimension, self._library)
        self._dimension = rows.shape[1]
        return rows


def _fastembed() -> Callable[[str], Encode]:
    from fastembed import TextEmbedding

    def load(model: str) -> Encode:
        loaded = TextEmbedding(model_name=model)
        return lambda texts, query: list(loaded.query_embed(texts) if query else loaded.passage_embed(texts))

    return load


def _sentence_transformers() -> Callable[[str], Encode]:
    from sentence_transformers import SentenceTransformer

    def load(model: str) -> Encode:
        loaded = SentenceTransformer(model)
        how = {"convert_to_numpy": True, "show_progress_bar": False}
        return lambda texts, _: loaded.encode(texts, batch_size=len(texts), **how)

    return load
