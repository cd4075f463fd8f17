"""Request vectors from an API in the form of its provider: in batches, with retries and checked answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.models.endpoint import ApiService, Endpoint
from afresh.models.vectors import MAX_TEXT_CHARS, checked
from afresh.ports import JsonReply

if TYPE_CHECKING:
    from afresh.ports import Matrix


QUESTION_SECONDS = 10.0  # a user waits for the answer
MOST_CHARS = 200_000  # in one request
MOST_UNCLAIMED = 4_096
SHORTEST = 200  # characters; a text that is still too large is an error
VECTORS = ApiService(
    section="embedding",
    gives="vectors",
    error=EmbedError,
    down=EmbedderUnavailable,
    less="embedding.batch_size and embedding.budget_per_run make it ask for less",
    odd="embedding.model, embedding.dimensions and the prefixes",
)


class RemoteEmbedder:
    """Implements `ports.Embedder` with an API in the form of its provider."""

    def __init__(
        self,
        model: str,
        form: "OpenAIEmbeddingApi | GeminiEmbeddingApi",
        endpoint: Endpoint,
        *,
        dimension: int | None = None,
        prefixes: tuple[str, str] = ("", ""),
        batch_size: int = 64,
    ) -> None:
        self.model = model
        self._form = form
        self._dimension = dimension
        self._prefixes = prefixes
        self._most = min(batch_size, form.most)
        self._endpoint = endpoint
        self._host = endpoint.host
        self._unclaimed: dict[str, Matrix] = {}  # paid rows of calls that failed later

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """Return one row for each text, or raise EmbedError; a retry does not pay for finished rows again."""
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
        """Return the row of a query, with one try."""
        body = self._form.body([_sendable(self._prefixes[1], text)], query=True)
        reply = await self._endpoint.ask_once(body, QUESTION_SECONDS)
        if reply.status != 200:
            raise self._endpoint.refusal(reply)
        return checked(self._vectors(reply), 1, self._dimension, self._host)

    async def close(self) -> None:
        """Do nothing: the creator of the API client closes it."""

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the texts in batches of limited size; `_smaller` may reduce the size of later batches."""
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
        """Return the rows from two smaller requests; a single text is cut in half, keeping its start."""
        import numpy as np

        middle = len(texts) // 2
        if middle:
            self._most = max(1, min(self._most, middle))
            halves = [await self._rows(half, query=query) for half in (texts[:middle], texts[middle:])]
            return np.concatenate(halves)
        if len(texts[0]) <= SHORTEST:
            raise EmbedError(f"{self._host} finds even {SHORTEST} characters too large (413)")
        return await self._rows([texts[0][: len(texts[0]) // 2]], query=query)

    def _vectors(self, reply: JsonReply) -> list[Any]:
        try:
            return self._form.rows(reply.json)
        except (TypeError, KeyError, ValueError, IndexError):
            raise self._endpoint.refusal(reply) from None


def _sendable(prefix: str, text: str) -> str:
    """Return a text that every API accepts: valid, of limited length, not blank."""
    whole = text[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return prefix + (whole if whole.strip() else "-")


class OpenAIEmbeddingApi:
    """The form of OpenAI and compatible APIs."""

    most: int = 2048

    def __init__(self, base_url: str, model: str, api_key: str | None, dimensions: int | None) -> None:
        self.url = f"{base_url}/embeddings"
        self.headers: Mapping[str, str] = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._fixed: dict[str, object] = {"model": model, "encoding_format": "float"}
        if dimensions is not None:
            self._fixed["dimensions"] = dimensions

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        """Return the request for these texts; queries are sent like any text."""
        return {**self._fixed, "input": list(texts)}

    def rows(self, answer: Any) -> list[Any]:
        """Return the vectors by their `index`, or in order if the server does not number them."""
        found = answer["data"]
        if all("index" not in each for each in found):
            return [each["embedding"] for each in found]
        numbered = {each["index"]: each["embedding"] for each in found}
        return [numbered[at] for at in range(len(found))]


class GeminiEmbeddingApi:
    """The form of Gemini's batchEmbedContents, which distinguishes documents and queries."""

    most: int = 100

    def __init__(self, base_url: str, model: str, api_key: str | None, dimensions: int | None) -> None:
        self._model = f"models/{model.removeprefix('models/')}"
        self.url = f"{base_url}/{self._model}:batchEmbedContents"
        self.headers: Mapping[str, str] = {"x-goog-api-key": api_key} if api_key else {}
        self._size = {} if dimensions is None else {"outputDimensionality": dimensions}

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        """Return the request for these texts."""
        task = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        fixed = {"model": self._model, "taskType": task, **self._size}
        return {"requests": [{**fixed, "content": {"parts": [{"text": text}]}} for text in texts]}

    def rows(self, answer: Any) -> list[Any]:
        """Return the vectors, which come in the order of the texts."""
        return [each["values"] for each in answer["embeddings"]]
