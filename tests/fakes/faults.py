"""Trouble that a scripted API makes on demand."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from tests.fakes.wire import Reply, raw


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFault:
    """What happens to one request instead of its answer; `on` is the kind of request it waits for."""

    status: int | None = 503  # None: the connection is cut
    on: str | None = None
    done: bool = False  # the request is carried out all the same, only its answer is lost
    retry_after: str | None = None  # the header
    error: dict[str, Any] | None = None  # what the body says; else `told to`

    def reply(self) -> Reply:
        """The bytes that the client gets to see."""
        if self.status is None:
            return hang_up()
        head = {"Content-Type": "application/json"}
        if self.retry_after is not None:
            head["Retry-After"] = self.retry_after
        error = self.error or {"message": "told to", "code": self.status}
        return raw(self.status, json.dumps({"error": error}).encode(), head)


class Script:
    """The faults to come, each met once; `outage` meets every request that none of them waits for."""

    def __init__(self) -> None:
        self.outage: HttpFault | None = None
        self._due: list[HttpFault] = []

    def add(self, *faults: HttpFault) -> None:
        """Let these happen to the next requests of their kind."""
        self._due.extend(faults)

    def clear(self) -> None:
        """All is well from now on."""
        self._due.clear()
        self.outage = None

    @property
    def left(self) -> int:
        """How many faults nobody has met yet."""
        return len(self._due)

    def take(self, kind: str) -> HttpFault | None:
        """What happens to a request of this kind."""
        for at, fault in enumerate(self._due):
            if fault.on in (None, kind):
                return self._due.pop(at)
        return self.outage if self.outage and self.outage.on in (None, kind) else None


async def hang_up() -> AsyncIterator[bytes]:
    """No answer: the connection ends."""
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
