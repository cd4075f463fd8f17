"""Records as they are shown by their numbers, and where a list of them goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from afresh.core.model import PageId, SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPage:
    """A page that a link stands on, and the words it has there."""

    id: PageId
    url: str
    title: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """A link joined with the pages it stands on."""

    id: int
    source_id: SourceId
    url: str
    score: float | None
    keywords: Mapping[str, float]
    comment: str | None
    crawl_time: datetime | None
    page_count: int
    pages: tuple[LinkedPage, ...]  # the nearest of them


class LinkPlace(NamedTuple):
    """Where a list of links goes on: behind this one."""

    score: float
    url: str
    id: int


Sources = Sequence[SourceId] | None  # None: all of them
