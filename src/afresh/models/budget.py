"""A limit to what one run sends to an API that is paid for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.errors import EmbedderDown, EmbedError
from afresh.ports import Embedder

if TYPE_CHECKING:
    from afresh.ports import Matrix


class Budgeted:
    """An embedder that gives up once a number of texts was sent; make one per run. Questions are free."""

    def __init__(self, inner: Embedder, texts: int) -> None:
        self.model = inner.model
        self._inner = inner
        self._budget = self._left = texts

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """What the embedder gives; EmbedError where fewer texts would do, EmbedderDown where none would."""
        if len(texts) > self._left:
            kind = EmbedError if self._left else EmbedderDown
            raise kind(
                f"the budget of {self._budget} texts a run is used up: refresh again, "
                "or raise embedding.budget_per_run"
            )
        self._left -= len(texts)
        try:
            return await self._inner.embed(texts)
        except EmbedError:
            self._left += len(texts)  # what brought no vectors is not paid for
            raise

    async def embed_query(self, text: str) -> "Matrix":
        """The row of a question."""
        return await self._inner.embed_query(text)

    async def close(self) -> None:
        """Close what it stands for."""
        await self._inner.close()
