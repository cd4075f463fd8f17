"""A model on loopback that speaks OpenAI's chat completions, with troubles on demand."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from afresh.testing.asked import Asked
from afresh.testing.embedder import Trouble
from afresh.testing.embedding_server import Status
from afresh.testing.server import HOST, LoopbackServer
from afresh.testing.wire import answer, raw_sockets

_TITLE = re.compile(r"^Title: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chat:
    """One request for a completion as it came in."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Any

    @property
    def system(self) -> str:
        """The prompt."""
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        """What the prompt is about."""
        return str(self.body["messages"][-1]["content"])

    @property
    def title(self) -> str:
        """The title of the document in question."""
        found = _TITLE.search(self.user)
        return found[1] if found else ""


class ChatServer:
    """Serves from a thread of its own; `script` holds what happens to the next requests, then all is well.

    A text is answered as it stands, a Status instead of a completion; of the troubles it knows `HANG`.
    """

    def __init__(self) -> None:
        self.script: list[str | Status | Trouble] = []
        self.asked: list[Chat] = []
        self._server = LoopbackServer(raw_sockets(self._respond))

    @property
    def base_url(self) -> str:
        """What `ai.base_url` has to be."""
        return f"http://{HOST}:{self._server.port}/v1"

    @property
    def calls(self) -> int:
        """How many requests came in."""
        return len(self.asked)

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
        chat = Chat(asked.path, asked.headers, json.loads(asked.body))
        self.asked.append(chat)
        due = self.script.pop(0) if self.script else f"What the model says of {chat.title}."
        if due is Trouble.HANG:
            await asyncio.Event().wait()
        if isinstance(due, Status):
            return answer(due.code, due.body, content_type="application/json", **(due.headers or {}))
        return answer(200, json.dumps(completion(due)).encode(), content_type="application/json")


def completion(content: object, **more: object) -> dict[str, Any]:
    """A completion that says this; `refusal=…` becomes part of its message."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "told", "choices": [choice]}
