"""Vectors from an API: in batches, with patience, and nothing believed unseen."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from afresh.errors import EmbedderDown, EmbedError
from afresh.models.endpoint import Endpoint, Sleep, utc_now
from afresh.models.forms import Form
from afresh.models.prose import LONGEST
from afresh.models.refusals import Service
from afresh.models.vectors import checked
from afresh.ports import Caller, Clock, Reply

if TYPE_CHECKING:
    from afresh.ports import Matrix

QUESTION_SECONDS = 10.0  # somebody waits for the answer
MOST_CHARS = 200_000  # in one request
MOST_UNCLAIMED = 4_096
SHORTEST = 200  # characters; a text that is too large even so is given up
_VECTORS = Service(
    section="embedding",
    gives="vectors",
    error=EmbedError,
    down=EmbedderDown,
    less="embedding.batch_size and embedding.budget_per_run make it ask for less",
    odd="embedding.model, embedding.dimensions and the prefixes",
)


class RemoteEmbedder:
    """Fulfils `ports.Embedder` with an API in the form of its provider."""

    def __init__(
        self,
        model: str,
        form: Form,
        caller: Caller,
        *,
        dimension: int | None = None,
        prefixes: tuple[str, str] = ("", ""),
        batch_size: int = 64,
        timeout_seconds: float = 60.0,
        secrets: Sequence[str] = (),
        sleep: Sleep = asyncio.sleep,
        clock: Clock = utc_now,
    ) -> None:
        self.model = model
        self._form = form
        self._dimension = dimension
        self._prefixes = prefixes
        self._most = min(batch_size, form.most)
        self._endpoint = Endpoint(
            _VECTORS,
            caller,
            form.url,
            form.headers,
            timeout_seconds=timeout_seconds,
            secrets=secrets,
            sleep=sleep,
            clock=clock,
        )
        self._host = self._endpoint.host
        self._unclaimed: dict[str, Matrix] = {}  # rows of calls that failed later on: they are paid for

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """One row for each text; all of them or an EmbedError, after which nothing is paid for twice."""
        import numpy as np

        sent = [_sendable(self._prefixes[0], text) for text in texts]
        made = {text: self._unclaimed[text] for text in sent if text in self._unclaimed}
        for batch in self._batches(text for text in dict.fromkeys(sent) if text not in made):
            new = dict(zip(batch, await self._rows(batch, query=False), strict=True))
            made |= new
            self._unclaimed |= new if len(self._unclaimed) < MOST_UNCLAIMED else {}
        for text in made:
            self._unclaimed.pop(text, None)
        return np.array([made[text] for text in sent], np.float32).reshape(len(sent), -1 if sent else 1)

    async def embed_query(self, text: str) -> "Matrix":
        """The row of a question, asked for once."""
        body = self._form.body([_sendable(self._prefixes[1], text)], query=True)
        reply = await self._endpoint.ask_once(body, QUESTION_SECONDS)
        if reply.status != 200:
            raise self._endpoint.refusal(reply)
        return checked(self._vectors(reply), 1, self._dimension, self._host)

    async def close(self) -> None:
        """Nothing: the caller belongs to whoever made it."""

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """The texts in requests of a bearable size; what was learnt from one answer holds for the next."""
        batch: list[str] = []
        for text in texts:
            if batch and (len(batch) >= self._most or sum(map(len, batch)) + len(text) > MOST_CHARS):
                yield batch
                batch = []
            batch.append(text)
        if batch:
            yield batch

    async def _rows(self, texts: list[str], *, query: bool) -> "Matrix":
        reply = await self._endpoint.ask(self._form.body(texts, query=query))
        if reply.status == 413:
            return await self._smaller(texts, query=query)
        if reply.status != 200:
            raise self._endpoint.refusal(reply)
        rows = checked(self._vectors(reply), len(texts), self._dimension, self._host)
        self._dimension = rows.shape[1]
        return rows

    async def _smaller(self, texts: list[str], *, query: bool) -> "Matrix":
        """The same in two requests; a single text that is too large is cut, as its beginning says most."""
        import numpy as np

        middle = len(texts) // 2
        if middle:
            self._most = max(1, min(self._most, middle))
            halves = [await self._rows(half, query=query) for half in (texts[:middle], texts[middle:])]
            return np.concatenate(halves)
        if len(texts[0]) <= SHORTEST:
            raise EmbedError(f"{self._host} finds even {SHORTEST} characters too large (413)")
        return await self._rows([texts[0][: len(texts[0]) // 2]], query=query)

    def _vectors(self, reply: Reply) -> list[Any]:
        try:
            return self._form.rows(reply.json)
        except (TypeError, KeyError, ValueError, IndexError):
            raise self._endpoint.refusal(reply) from None


def _sendable(prefix: str, text: str) -> str:
    """A text that every API takes: valid, not endless, not blank."""
    whole = text[:LONGEST].encode("utf-8", "replace").decode("utf-8")
    return prefix + (whole if whole.strip() else "-")
