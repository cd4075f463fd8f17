"""What a store finds for a search, before it is ranked and shown."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from afresh.model.records import PageId, SourceId


class Match(NamedTuple):
    """A chunk that holds words of a query; the higher the score, the better."""

    chunk: int
    score: float


class Near(NamedTuple):
    """A chunk, and how near its meaning is: 1 is the same, 0 has nothing to do with it."""

    chunk: int
    likeness: float


class Nearest(NamedTuple):
    """The nearest chunks, the nearest first, and how near all of those are that were looked at."""

    chunks: tuple[Near, ...] = ()
    mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk with the page it stands on."""

    chunk: int
    page: PageId
    order: int
    content: str | None  # None where no text is kept
    heading: tuple[str, ...]
    source_id: SourceId
    content_hash: str
    url: str
    title: str
    source: str
    version: str | None
    depth: int
    language: str | None
    checked_at: datetime | None
    seen_at: datetime | None  # when it last answered with this content
    changed_at: datetime | None
    also_at: tuple[str, ...] = ()  # other addresses with the same content
