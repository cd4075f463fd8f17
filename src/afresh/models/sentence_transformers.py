"""Models that the sentence-transformers library loads and runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.errors import EmbedderDown
from afresh.models.vectors import checked

if TYPE_CHECKING:
    from afresh.ports import Matrix


class SentenceTransformers:
    """Fulfils `Rows` with a model of sentence-transformers, which downloads it when it is first used."""

    def __init__(self, model: str, prefixes: tuple[str, str] = ("", "")) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise EmbedderDown(
                "embedding.provider: sentence-transformers needs its library: "
                "pip install 'afresh[sentence-transformers]'"
            ) from None
        try:
            self._model = SentenceTransformer(model)
        except Exception as error:
            raise EmbedderDown(
                f"sentence-transformers cannot load {model} ({type(error).__name__}): check embedding.model "
                "and whether it may be downloaded"
            ) from error
        self._prefixes = prefixes
        self._dimension: int | None = None

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """One row of length 1 for each text."""
        given = [self._prefixes[query] + text for text in texts]
        found = self._model.encode(
            given, batch_size=len(given), convert_to_numpy=True, show_progress_bar=False
        )
        rows = checked(found, len(texts), self._dimension, "sentence-transformers")
        self._dimension = rows.shape[1]
        return rows
