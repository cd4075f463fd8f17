"""A limit to what one run sends to an API that is paid for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.core.errors import EmbedderDown
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
        """What the embedder gives, or EmbedderDown where the texts would go beyond the budget."""
        if len(texts) > self._left:
            raise EmbedderDown(
                f"the budget of {self._budget} texts a run is used up: refresh again, "
                "or raise embedding.budget_per_run"
            )
        self._left -= len(texts)
        return await self._inner.embed(texts)

    async def embed_query(self, text: str) -> "Matrix":
        """The row of a question."""
        return await self._inner.embed_query(text)

    async def close(self) -> None:
        """Close what it stands for."""
        await self._inner.close()
