"""What an external store holds: its documents, how ours are recognised, and what is put there."""

from dataclasses import dataclass
from enum import StrEnum


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
    name: str  # display name: the title of the page
    markdown: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    """A document in a store."""

    id: str
    name: str
    state: RemoteState
    mark: Mark | None  # None: foreign
    url: str | None = None  # of its page, as its metadata say; None where they do not
    size: int = 0
    reason: str | None = None
