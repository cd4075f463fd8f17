"""Compute vectors in this process: prepare the texts, load the model, check and scale its output."""

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from afresh.errors import EmbedderUnavailable, EmbedError

if TYPE_CHECKING:
    from afresh.ports import Matrix

Encode = Callable[[list[str], bool], object]  # texts, and whether they are queries, to rows of numbers
MAX_TEXT_CHARS = 8_000  # a chunk has about 2,000, and a query is short
_MIN_LENGTH = 1e-6  # of a vector that is scaled
_MARKS = re.compile(
    r"\{[ *#][^}]{0,200}\}"  # { #anchor }
    r"|\]\([^)\s]{0,2000}(?:\s[^)]{0,200})?\)"  # the target of a link
    r"|https?://\S+"
    r"|[`*#_>|\[\]]+"
)


class EmbeddingModel(Protocol):
    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """Return one vector of length 1 for each text, as a row; fastest for texts of similar length."""


class LocalEmbedder:
    """Implements `ports.Embedder` with a model in this process; the model is loaded on first use."""

    def __init__(self, model: str, load: Callable[[], EmbeddingModel], *, batch_size: int) -> None:
        self.model = model
        self._load = load
        self._loaded: EmbeddingModel | None = None
        self._loading = threading.Lock()
        self._batch_size = batch_size

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """Embed the texts in batches, between which the task can be cancelled."""
        import numpy as np

        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        parts = [order[at : at + self._batch_size] for at in range(0, len(order), self._batch_size)]
        found = [await asyncio.to_thread(self.rows, [texts[at] for at in part]) for part in parts]
        if not found:
            return np.zeros((0, 1), np.float32)
        rows = np.empty((len(texts), found[0].shape[1]), np.float32)
        rows[order] = np.concatenate(found)
        return rows

    async def embed_query(self, text: str) -> "Matrix":
        return await asyncio.to_thread(self.rows, [text], query=True)

    async def close(self) -> None:
        """Do nothing: a loaded model stays in memory until the process ends."""

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """Embed the texts in this thread; load the model if needed."""
        with self._loading:
            model = self._loaded = self._loaded or self._load()
        try:
            return model.rows(texts, query=query)
        except EmbedError:
            raise
        except Exception as error:
            raise EmbedError(f"{self.model} could not embed a text ({type(error).__name__})") from error


class LibraryModel:
    """Implements `EmbeddingModel` with fastembed or sentence-transformers, which download the model."""

    def __init__(self, library: str, model: str, prefixes: tuple[str, str] = ("", "")) -> None:
        load = _load_fastembed if library == "fastembed" else _load_sentence_transformers
        try:
            self._encode = load(model)
        except ImportError:
            fix = f"pip install 'afresh[{library}]'"
            raise EmbedderUnavailable(f"embedding.provider: {library} needs its library: {fix}") from None
        except Exception as error:
            raise EmbedderUnavailable(
                f"{library} cannot load {model} ({type(error).__name__}): check embedding.model and whether "
                "it may be downloaded"
            ) from error
        self._library = library
        self._prefixes = prefixes
        self._dimension: int | None = None

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        found = self._encode([self._prefixes[query] + text for text in texts], query)
        rows = checked_rows(found, len(texts), self._dimension, self._library)
        self._dimension = rows.shape[1]
        return rows


def _load_fastembed(model: str) -> Encode:
    from fastembed import TextEmbedding

    loaded = TextEmbedding(model_name=model)
    return lambda texts, query: list(loaded.query_embed(texts) if query else loaded.passage_embed(texts))


def _load_sentence_transformers(model: str) -> Encode:
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(model)
    return lambda texts, _: loaded.encode(texts, batch_size=len(texts), convert_to_numpy=True, show_progress_bar=False)


def prose(text: str) -> str:
    """Return the text on one line without Markdown marks, URLs and invalid Unicode."""
    whole = text[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return " ".join(_MARKS.sub(" ", whole).split())


def unit_rows(rows: "Matrix") -> "Matrix":
    """Scale vectors to length 1; a zero vector becomes (1, 0, 0, …), never NaN."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    is_zero = lengths[:, 0] < _MIN_LENGTH
    lengths[is_zero] = 1.0
    out: Matrix = (rows / lengths).astype(np.float32, copy=False)
    out[is_zero] = np.eye(1, rows.shape[1], dtype=np.float32)
    return out


def checked_rows(rows: object, count: int, dimension: int | None, model: str) -> "Matrix":
    """Scale the output of a model to length 1; raise EmbedError if it is not one vector for each text."""
    import numpy as np

    try:
        with np.errstate(over="ignore"):
            found = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise EmbedError(f"{model} answered with something other than rows of numbers") from None
    if found.shape[:1] != (count,):
        raise EmbedError(f"{model} answered with {len(found) if found.ndim else 0} vectors for {count} texts")
    if found.ndim != 2 or not found.shape[1]:
        raise EmbedError(f"{model} answered with vectors of different or no length")
    if dimension is not None and found.shape[1] != dimension:
        raise EmbedError(
            f"{model} answered with {found.shape[1]} numbers per vector instead of {dimension}: "
            "if the model was changed, give it another name in embedding.model and run `afresh reindex`"
        )
    largest = np.abs(found).max(axis=1, initial=0, keepdims=True)
    if not np.isfinite(largest).all() or not largest.all():
        raise EmbedError(f"{model} answered with a vector that is all zeros or not numbers")
    return unit_rows(found / largest)  # scale first, so that squares do not overflow
