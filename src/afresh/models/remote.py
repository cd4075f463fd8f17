"""Vectors from an API: in batches, with patience, and nothing believed unseen."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from afresh.core.errors import ApiError, ApiLate, EmbedderDown, EmbedError
from afresh.core.httpdate import parse_retry_after
from afresh.models.forms import Form
from afresh.models.prose import LONGEST
from afresh.models.refusals import refusal
from afresh.models.vectors import checked
from afresh.ports import Caller, Clock, Reply

if TYPE_CHECKING:
    from afresh.ports import Matrix

TRIES = 4
FIRST_WAIT = 1.0  # seconds; it doubles with every try
LONGEST_WAIT = 60.0
QUESTION_SECONDS = 10.0  # somebody waits for the answer: one try, and not for long
MOST_CHARS = 200_000  # in one request
MOST_UNCLAIMED = 4_096
SHORTEST = 200  # characters; a text that is too large even so is given up
_PASSES = frozenset({408, 409, 425, 429})
Sleep = Callable[[float], Awaitable[None]]


def _utc_now() -> datetime:
    return datetime.now(UTC)


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
        clock: Clock = _utc_now,
    ) -> None:
        self.model = model
        self._form = form
        self._caller = caller
        self._dimension = dimension
        self._prefixes = prefixes
        self._most = min(batch_size, form.most)
        self._timeout = timeout_seconds
        self._secrets = secrets
        self._sleep = sleep
        self._clock = clock
        self._host = urlsplit(form.url).hostname or ""
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
        timeout = min(self._timeout, QUESTION_SECONDS)
        try:
            reply = await self._caller.post_json(self._form.url, self._form.headers, body, timeout)
        except ApiError as error:
            raise EmbedderDown(f"{error}: see if the service runs and embedding.base_url is right") from None
        if reply.status != 200:
            raise refusal(reply, self._host, self._secrets)
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
        reply = await self._answer(self._form.body(texts, query=query))
        if reply.status == 413:
            return await self._smaller(texts, query=query)
        if reply.status != 200:
            raise refusal(reply, self._host, self._secrets)
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
            raise refusal(reply, self._host, self._secrets) from None

    async def _answer(self, body: object) -> Reply:
        """The answer to a request, asked again while the trouble is of a kind that passes."""
        for left in reversed(range(TRIES)):
            wait = FIRST_WAIT * 2 ** (TRIES - 1 - left)
            try:
                reply = await self._caller.post_json(self._form.url, self._form.headers, body, self._timeout)
            except ApiLate as late:
                raise EmbedderDown(
                    f"{late}: see if the service is well, or raise embedding.timeout_seconds"
                ) from None
            except ApiError as error:
                trouble: EmbedError = EmbedderDown(
                    f"{error}: see if the service runs and embedding.base_url is right"
                )
            else:
                if reply.status not in _PASSES and reply.status < 500:
                    return reply
                trouble = refusal(reply, self._host, self._secrets)
                wait = self._asked_wait(reply) or wait
            if not left or wait > LONGEST_WAIT:
                raise trouble
            await self._sleep(wait)
        raise AssertionError("a loop that returns or raises")

    def _asked_wait(self, reply: Reply) -> float | None:
        return parse_retry_after(reply.headers.get("retry-after"), self._clock())


def _sendable(prefix: str, text: str) -> str:
    """A text that every API takes: valid, not endless, not blank."""
    whole = text[:LONGEST].encode("utf-8", "replace").decode("utf-8")
    return prefix + (whole if whole.strip() else "-")
