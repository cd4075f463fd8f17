"""The port of external stores: how documents get there, are looked at and leave again.

A store keeps documents and says of each whether it can be searched. It knows no update: replacing a
document is dropping one and putting another, in the order that the settings choose. Ours are told from
those of others by their mark, which is written into their metadata.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class RemoteState(StrEnum):
    """What the store says of a document."""

    PROCESSING = "processing"
    ACTIVE = "active"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Mark:
    """How our documents are recognised: written into their metadata."""

    store: str  # which afresh store: an id made once per store, so that two can share one remote store
    source: str  # label of the source
    page: int  # page id
    hash: str  # content hash


@dataclass(frozen=True, slots=True)
class Upload:
    """A document to be put into a store."""

    mark: Mark
    url: str
    title: str
    name: str  # display name, stable
    markdown: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    """A document in a store."""

    id: str
    name: str
    state: RemoteState
    mark: Mark | None  # None: foreign
    size: int = 0
    reason: str | None = None


class Sink(Protocol):
    """An external store; trouble is a SinkError that says what helps."""

    name: str
    at_once: int  # uploads side by side

    async def put(self, upload: Upload) -> Remote:
        """Add a document; there is no update: replace = drop + put, or put + drop."""
        ...

    async def drop(self, remote_id: str) -> None:
        """Delete a document; absent already is success."""
        ...

    async def look(self, remote_id: str) -> Remote | None:
        """A document as it stands; None: absent."""
        ...

    def all(self) -> AsyncIterator[Remote]:
        """Every document, ours and foreign."""
        ...

    async def close(self) -> None: ...
