"""The form of Gemini's embeddings."""

from collections.abc import Mapping, Sequence
from typing import Any


class GeminiForm:
    """Fulfils `Form` with batchEmbedContents; documents and questions are told apart."""

    most: int = 100

    def __init__(self, base_url: str, model: str, api_key: str | None, dimensions: int | None) -> None:
        self._model = f"models/{model.removeprefix('models/')}"
        self.url = f"{base_url}/{self._model}:batchEmbedContents"
        self.headers: Mapping[str, str] = {"x-goog-api-key": api_key} if api_key else {}
        self._size = {} if dimensions is None else {"outputDimensionality": dimensions}

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        """The request for these texts."""
        task = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        return {"requests": [self._one(text, task) for text in texts]}

    def _one(self, text: str, task: str) -> dict[str, object]:
        content = {"parts": [{"text": text}]}
        return {"model": self._model, "content": content, "taskType": task, **self._size}

    def rows(self, answer: Any) -> list[Any]:
        """The vectors, which come in the order of the texts."""
        return [each["values"] for each in answer["embeddings"]]
