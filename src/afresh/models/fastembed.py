"""Models that the fastembed library loads and runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.errors import EmbedderDown
from afresh.models.vectors import checked

if TYPE_CHECKING:
    from afresh.ports import Matrix


class Fastembed:
    """Fulfils `Rows` with a model of fastembed, which downloads it when it is first used."""

    def __init__(self, model: str, prefixes: tuple[str, str] = ("", "")) -> None:
        try:
            from fastembed import TextEmbedding
        except ImportError:
            raise EmbedderDown(
                "embedding.provider: fastembed needs its library: pip install 'afresh[fastembed]'"
            ) from None
        try:
            self._model = TextEmbedding(model_name=model)
        except Exception as error:
            raise EmbedderDown(
                f"fastembed cannot load {model} ({type(error).__name__}): check embedding.model and whether "
                "it may be downloaded"
            ) from error
        self._prefixes = prefixes
        self._dimension: int | None = None

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """One row of length 1 for each text."""
        given = [self._prefixes[query] + text for text in texts]
        found = self._model.query_embed(given) if query else self._model.passage_embed(given)
        rows = checked(list(found), len(texts), self._dimension, "fastembed")
        self._dimension = rows.shape[1]
        return rows
