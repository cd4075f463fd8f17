"""Request vectors from an API in batches, with retries, and check the answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from afresh.config.models import EmbeddingSettings
from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.models.endpoint import ApiService, Endpoint
from afresh.models.local import MAX_TEXT_CHARS, checked_rows
from afresh.ports import JsonApi, JsonReply, Matrix

MAX_QUERY_SECONDS = 10.0  # a user waits for the answer
MAX_REQUEST_CHARS = 200_000
MAX_UNCLAIMED_ROWS = 4_096
MIN_TEXT_CHARS = 200  # a text of this length that is still too large is an error
VECTORS = ApiService(
    section="embedding",
    gives="vectors",
    error=EmbedError,
    down=EmbedderUnavailable,
    advice="embedding.batch_size and embedding.budget_per_run limit the calls",
    suspects="embedding.model, embedding.dimensions and the prefixes",
    max_failures=1,
)


class RemoteEmbedder:
    """Implements `ports.Embedder` with an API; create one per run, because its budget is per run."""

    def __init__(self, model: str, settings: EmbeddingSettings, caller: JsonApi) -> None:
        form = OpenAIEmbeddingApi(settings) if settings.provider == "openai" else GeminiEmbeddingApi(settings)
        self.endpoint = Endpoint(VECTORS, caller, form.url, form.headers, settings.timeout_seconds, settings.api_key)
        self.model = model
        self._form = form
        self._dimension = settings.dimensions
        self._prefixes = (settings.document_prefix, settings.query_prefix)
        self._batch_size = min(settings.batch_size, form.max_texts)
        self._budget = settings.budget_per_run
        self._embedded = 0  # texts that count for the budget
        self._unclaimed: dict[str, Matrix] = {}  # paid vectors of calls that failed later

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one vector for each text; reuse those that an earlier call received before it failed.

        Raise EmbedError if the texts exceed the rest of the budget, or EmbedderUnavailable if nothing is left.
        """
        import numpy as np

        if self._budget is not None and self._embedded + len(texts) > self._budget:
            kind = EmbedError if self._embedded < self._budget else EmbedderUnavailable
            advice = "refresh again, or raise embedding.budget_per_run"
            raise kind(f"the budget of {self._budget} texts per run is used up: {advice}")
        sent = [_sendable(self._prefixes[0], text) for text in texts]
        made = {text: self._unclaimed[text] for text in sent if text in self._unclaimed}
        for batch in self._batches(text for text in dict.fromkeys(sent) if text not in made):
            new = dict(zip(batch, await self._request_rows(batch), strict=True))
            made |= new
            self._unclaimed |= new if len(self._unclaimed) < MAX_UNCLAIMED_ROWS else {}
        for text in made:
            self._unclaimed.pop(text, None)
        self._embedded += len(texts)
        return np.array([made[text] for text in sent], np.float32).reshape(len(sent), -1 if sent else 1)

    async def embed_query(self, text: str) -> Matrix:
        body = self._form.body([_sendable(self._prefixes[1], text)], query=True)
        return self._read_rows(await self.endpoint.ask_once(body, MAX_QUERY_SECONDS), 1)

    async def close(self) -> None:
        """Do nothing: the creator of the API client closes it."""

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the texts in batches; `_request_rows` may reduce the size of later ones."""
        batch: list[str] = []
        for text in texts:
            if batch and (len(batch) >= self._batch_size or sum(map(len, batch)) + len(text) > MAX_REQUEST_CHARS):
                yield batch
                batch = []
            batch.append(text)
        if batch:
            yield batch

    async def _request_rows(self, texts: list[str]) -> Matrix:
        """Request one vector for each text; halve a request or a text that is too large."""
        import numpy as np

        reply = await self.endpoint.ask(self._form.body(texts, query=False))
        if reply.status != 413:
            rows = self._read_rows(reply, len(texts))
            self._dimension = rows.shape[1]
            return rows
        if middle := len(texts) // 2:
            self._batch_size = max(1, min(self._batch_size, middle))
            return np.concatenate([await self._request_rows(half) for half in (texts[:middle], texts[middle:])])
        if len(texts[0]) <= MIN_TEXT_CHARS:
            raise EmbedError(f"{self.endpoint.host} rejects even {MIN_TEXT_CHARS} characters as too large (413)")
        return await self._request_rows([texts[0][: len(texts[0]) // 2]])

    def _read_rows(self, reply: JsonReply, count: int) -> Matrix:
        if reply.status != 200:
            raise self.endpoint.refusal(reply)
        try:
            rows = self._form.rows(reply.json)
        except (TypeError, KeyError, ValueError, IndexError):
            raise self.endpoint.refusal(reply) from None
        return checked_rows(rows, count, self._dimension, self.endpoint.host)


def _sendable(prefix: str, text: str) -> str:
    """Return prefix and text in a form that every API accepts: valid Unicode, not too long, not blank."""
    whole = text[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return prefix + (whole if whole.strip() else "-")


class OpenAIEmbeddingApi:
    max_texts: int = 2048

    def __init__(self, settings: EmbeddingSettings) -> None:
        key, size = settings.api_key, settings.dimensions
        self.url = f"{settings.address}/embeddings"
        self.headers: Mapping[str, str] = {"Authorization": f"Bearer {key}"} if key else {}
        self._fixed: dict[str, object] = {"model": settings.named_model or "", "encoding_format": "float"}
        self._fixed |= {} if size is None else {"dimensions": size}

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        return {**self._fixed, "input": list(texts)}

    def rows(self, answer: Any) -> list[Any]:
        """Return the vectors in the order of their `index`; not every server sends one."""
        found = answer["data"]
        if all("index" not in each for each in found):
            return [each["embedding"] for each in found]
        numbered = {each["index"]: each["embedding"] for each in found}
        return [numbered[at] for at in range(len(found))]


class GeminiEmbeddingApi:
    max_texts: int = 100

    def __init__(self, settings: EmbeddingSettings) -> None:
        key, size = settings.api_key, settings.dimensions
        self._model = f"models/{(settings.named_model or '').removeprefix('models/')}"
        self.url = f"{settings.address}/{self._model}:batchEmbedContents"
        self.headers: Mapping[str, str] = {"x-goog-api-key": key} if key else {}
        self._size = {} if size is None else {"outputDimensionality": size}

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        task = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        fixed = {"model": self._model, "taskType": task, **self._size}
        return {"requests": [{**fixed, "content": {"parts": [{"text": text}]}} for text in texts]}

    def rows(self, answer: Any) -> list[Any]:
        return [each["values"] for each in answer["embeddings"]]
