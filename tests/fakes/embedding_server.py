"""An embedding API on loopback that speaks the forms of OpenAI and of Gemini, with troubles on demand."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.api import LoopbackApi
from tests.fakes.wire import answer

from afresh.testing.embedder import EmbedderFault, FakeEmbedder
from afresh.testing.site import RecordedRequest


@dataclass(frozen=True, slots=True)
class Status:
    """An answer without vectors."""

    code: int
    headers: Mapping[str, str] | None = None  # names as keyword arguments: retry_after
    body: bytes = b'{"error": {"message": "told to"}}'


@dataclass(frozen=True, slots=True)
class Asking:
    """One request for vectors as it came in."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Any
    texts: tuple[str, ...]


class EmbeddingServer(LoopbackApi):
    """Serves from a thread of its own; `script` holds what happens to the next requests, then all is well."""

    def __init__(self, *, dimension: int = 16) -> None:
        super().__init__()
        self.dimension = dimension
        self.script: list[EmbedderFault | Status] = []
        self.asked: list[Asking] = []
        self.most_texts: int | None = None  # requests with more are answered 413
        self.max_text_chars: int | None = None  # and so are texts with more characters
        self.backwards = False  # whether answers come in the order of their numbers turned round

    @property
    def base_url(self) -> str:
        """What `embedding.base_url` has to be."""
        return f"{self.origin}/v1"

    async def _respond(self, asked: RecordedRequest) -> bytes:
        body = json.loads(asked.body)
        gemini = asked.path.endswith(":batchEmbedContents")
        parts = [each["content"]["parts"] for each in body["requests"]] if gemini else []
        texts = tuple(part[0]["text"] for part in parts) if gemini else tuple(body["input"])
        self.asked.append(Asking(asked.path, asked.headers, body, texts))
        due = self.script.pop(0) if self.script else self._too_large(texts)
        if isinstance(due, Status):
            return answer(due.code, due.body, content_type="application/json", **(due.headers or {}))
        if due is EmbedderFault.HANG:
            await asyncio.Event().wait()
        rows = await self._rows(texts, due)
        found = {"embeddings": [{"values": row} for row in rows]} if gemini else self._numbered(rows)
        return answer(200, json.dumps(found).encode(), content_type="application/json")

    def _too_large(self, texts: tuple[str, ...]) -> Status | None:
        many = self.most_texts is not None and len(texts) > self.most_texts
        long = self.max_text_chars is not None and max(map(len, texts)) > self.max_text_chars
        return Status(413) if many or long else None

    async def _rows(self, texts: tuple[str, ...], due: EmbedderFault | None) -> list[list[float]]:
        fake = FakeEmbedder(dimension=self.dimension)
        fake.always = due
        return [row.tolist() for row in await fake.embed(texts)]

    def _numbered(self, rows: list[list[float]]) -> dict[str, Any]:
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"object": "list", "data": data[::-1] if self.backwards else data, "model": "told"}
