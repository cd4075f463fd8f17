"""An embedding API on loopback that speaks the forms of OpenAI and of Gemini, with troubles on demand."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from afresh.testing.asked import Asked
from afresh.testing.embedder import FakeEmbedder, Trouble
from afresh.testing.server import HOST, LoopbackServer
from afresh.testing.wire import answer, raw_sockets


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


class EmbeddingServer:
    """Serves from a thread of its own; `script` holds what happens to the next requests, then all is well."""

    def __init__(self, *, dimension: int = 16) -> None:
        self.dimension = dimension
        self.script: list[Trouble | Status] = []
        self.asked: list[Asking] = []
        self.most_texts: int | None = None  # requests with more are answered 413
        self.longest_text: int | None = None  # and so are texts with more characters
        self.backwards = False  # whether answers come in the order of their numbers turned round
        self._server = LoopbackServer(raw_sockets(self._respond))

    @property
    def base_url(self) -> str:
        """What `embedding.base_url` has to be."""
        return f"http://{HOST}:{self._server.port}/v1"

    def down(self) -> None:
        """Refuse connections."""
        self._server.down()

    def up(self) -> None:
        """Accept connections again."""
        self._server.up()

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _respond(self, asked: Asked) -> bytes:
        body = json.loads(asked.body)
        gemini = asked.path.endswith(":batchEmbedContents")
        parts = [each["content"]["parts"] for each in body["requests"]] if gemini else []
        texts = tuple(part[0]["text"] for part in parts) if gemini else tuple(body["input"])
        self.asked.append(Asking(asked.path, asked.headers, body, texts))
        due = self.script.pop(0) if self.script else self._too_large(texts)
        if isinstance(due, Status):
            return answer(due.code, due.body, content_type="application/json", **(due.headers or {}))
        if due is Trouble.HANG:
            await asyncio.Event().wait()
        rows = await self._rows(texts, due)
        found = {"embeddings": [{"values": row} for row in rows]} if gemini else self._numbered(rows)
        return answer(200, json.dumps(found).encode(), content_type="application/json")

    def _too_large(self, texts: tuple[str, ...]) -> Status | None:
        many = self.most_texts is not None and len(texts) > self.most_texts
        long = self.longest_text is not None and max(map(len, texts)) > self.longest_text
        return Status(413) if many or long else None

    async def _rows(self, texts: tuple[str, ...], due: Trouble | None) -> list[list[float]]:
        fake = FakeEmbedder(dimension=self.dimension)
        fake.always = due
        return [row.tolist() for row in await fake.embed(texts)]

    def _numbered(self, rows: list[list[float]]) -> dict[str, Any]:
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"object": "list", "data": data[::-1] if self.backwards else data, "model": "told"}
