"""A model on loopback that speaks OpenAI's chat completions, with troubles on demand."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tests.fakes.api import LoopbackApi
from tests.fakes.chat import Chat, completion
from tests.fakes.embedding_server import Status
from tests.fakes.link_answers import Odd, Scores, entry, literal_scores, write_answer
from tests.fakes.wire import Reply, answer, raw

from afresh.links.score import LinkToScore
from afresh.testing.embedder import EmbedderFault
from afresh.testing.site import RecordedRequest

_JSON = "application/json"
_REFUSED = b'{"error": {"message": "unknown parameter: response_format"}}'
_OVERLOADED = b'{"error": {"message": "overloaded", "code": 529}}'
_DRIP_SECONDS = 0.02
_LARGE = 1_000_000


class ChatServer(LoopbackApi):
    """Serves from a thread of its own; `script` holds what happens to the next requests, then all is well.

    A text is answered as it stands, a Status instead of a completion, an Odd is a spoilt answer to a request
    for scores; of the troubles it knows `HANG`. Scores come from `scorer`, summaries from the title.
    """

    def __init__(self) -> None:
        super().__init__()
        self.script: list[str | Status | EmbedderFault | Odd] = []
        self.asked: list[Chat] = []
        self.scorer: Callable[[LinkToScore, Sequence[str]], Scores] = literal_scores
        self.refused_forms: frozenset[str] = frozenset()  # of `json_schema` and `json_object`
        self.usage: int | None = None  # tokens that each completion says it used

    @property
    def base_url(self) -> str:
        """What `ai.base_url` has to be."""
        return f"{self.origin}/v1"

    @property
    def calls(self) -> int:
        """How many requests came in."""
        return len(self.asked)

    @property
    def links_per_call(self) -> list[int]:
        """How many links each request for scores held."""
        return [len(chat.links) for chat in self.asked if chat.links]

    async def _respond(self, asked: RecordedRequest) -> Reply:
        chat = Chat(asked.path, asked.headers, json.loads(asked.body))
        self.asked.append(chat)
        if chat.form in self.refused_forms:
            return answer(400, _REFUSED, content_type=_JSON)
        due = self.script.pop(0) if self.script else None
        match due:
            case EmbedderFault.HANG:
                await asyncio.Event().wait()
            case Status():
                return answer(due.code, due.body, content_type=_JSON, **(due.headers or {}))
            case Odd.ERROR_OBJECT:
                return answer(200, _OVERLOADED, content_type=_JSON)
            case Odd.CUT | Odd.DRIP:
                return _unfinished(self._completion(self._content(chat, None)), due)
        return answer(200, self._completion(self._content(chat, due)), content_type=_JSON)

    def _content(self, chat: Chat, due: object) -> str:
        if isinstance(due, str):
            return due
        if not chat.links:
            return f"What the model says of {chat.title}."
        scored = ((link.url, self.scorer(link, chat.keywords)) for link in chat.links)
        entries = [entry(url, scores) for url, scores in scored if scores]
        return write_answer(entries, due if isinstance(due, Odd) else None)

    def _completion(self, content: str) -> bytes:
        whole: dict[str, Any] = completion(content)
        if self.usage is not None:
            whole["usage"] = {"total_tokens": self.usage}
        return json.dumps(whole).encode()


async def _unfinished(body: bytes, odd: Odd) -> AsyncIterator[bytes]:
    """An answer of which the end never comes."""
    yield raw(200, body[: len(body) // 2], {"Content-Type": _JSON, "Content-Length": str(_LARGE)})
    while odd is Odd.DRIP:
        await asyncio.sleep(_DRIP_SECONDS)
        yield b" "
