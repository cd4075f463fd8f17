"""External stores that hold copies of pages."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class RemoteState(StrEnum):
    """What a store says of a document."""

    PROCESSING = "processing"
    ACTIVE = "active"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Mark:
    """How our documents are recognised: written into their metadata."""

    store: str  # an id made once per afresh store, so that two installations can share one remote store
    source: str  # label of the source
    page: int  # page id
    hash: str  # content hash


@dataclass(frozen=True, slots=True)
class Upload:
    """A page as it is to stand in a store."""

    mark: Mark
    url: str
    title: str
    name: str  # display name, stable
    markdown: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    """A document as the store tells of it."""

    id: str
    name: str
    state: RemoteState
    mark: Mark | None  # None: foreign
    size: int = 0
    reason: str | None = None


class Sink(Protocol):
    """An external store; trouble is a SinkError of the kind that says what to do."""

    name: str
    at_once: int  # uploads side by side

    async def put(self, upload: Upload) -> Remote:
        """Hand over a document; there is no update: replace is drop and put, or put and drop."""
        ...

    async def drop(self, remote_id: str) -> None:
        """Remove a document; absent already is success."""
        ...

    async def look(self, remote_id: str) -> Remote | None:
        """A document as it is now; None if it is absent."""
        ...

    def all(self) -> AsyncIterator[Remote]:
        """Every document, ours and foreign."""
        ...

    async def close(self) -> None: ...
