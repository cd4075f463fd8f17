"""Records of search requests, matches and vectors."""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from afresh.dataclass import dataclass
from afresh.model.fetch import Chunk
from afresh.model.records import Page, PageId, SourceId
from afresh.model.reports import SearchHit

if TYPE_CHECKING:
    from afresh.ports import Matrix

UNEMBEDDED = "not embedded"  # prefix of the reason of an attempt whose content still needs vectors


class SearchMode(StrEnum):
    """How a search finds chunks: by words, by vectors, or by both."""

    HYBRID = "hybrid"
    TEXT = "text"
    VECTOR = "vector"

    @classmethod
    def _missing_(cls, value: object) -> "SearchMode | None":
        return MODE_NAMES.get(value)


MODE_NAMES: dict[object, SearchMode] = {"keyword": SearchMode.TEXT, "semantic": SearchMode.VECTOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """The sources and pages to search; a field that is None sets no limit."""

    sources: tuple[SourceId, ...] | None = None
    language: str | None = None
    path: str | None = None  # a glob for the path of the URL
    changed_after: datetime | None = None
    checked_after: datetime | None = None

    def __bool__(self) -> bool:
        return self.sources is not None or self.by_page

    @property
    def by_page(self) -> bool:
        """Return whether the filter limits pages, and not only sources."""
        return any((self.language, self.path, self.changed_after, self.checked_after))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    query: str
    within: SearchFilter = SearchFilter()
    mode: SearchMode = SearchMode.HYBRID
    limit: int = 10
    every_chunk: bool = False  # False: return only the best passage of each page


class ChunkMatch(NamedTuple):
    """A chunk that matches a query by words or by vector; a higher score is better."""

    chunk: int
    score: float


class VectorMatches(NamedTuple):
    """The chunks nearest to a query, nearest first, and the mean similarity (at most 1) of all vectors to it."""

    chunks: tuple[ChunkMatch, ...] = ()
    mean: float = 0.0


class ChunkVectors(NamedTuple):
    """The vectors of chunks, a row for each, and the mean of all vectors of their model."""

    chunks: tuple[int, ...]
    rows: "Matrix"
    middle: "Matrix"

    @classmethod
    def none(cls) -> "ChunkVectors":
        import numpy as np

        return cls((), np.empty((0, 0), np.float32), np.empty(0, np.float32))

    def plus(self, others: "ChunkVectors") -> "ChunkVectors":
        import numpy as np

        if not (self.chunks and others.chunks):
            return others if others.chunks else self
        return ChunkVectors((*self.chunks, *others.chunks), np.concatenate([self.rows, others.rows]), others.middle)

    def likeness(self, vector: "Matrix") -> VectorMatches:
        """Return the similarity of each vector, and of the mean vector, to `vector`."""
        if not self.chunks:
            return VectorMatches()
        found = map(ChunkMatch, self.chunks, (self.rows @ vector[0]).tolist())
        return VectorMatches(tuple(found), float(self.middle @ vector[0]))

    def mean_of(self, chunks: Collection[int]) -> "Matrix | None":
        """Return the mean vector of these chunks; None if they have no vectors here."""
        places = [at for at, chunk in enumerate(self.chunks) if chunk in chunks]
        return self.rows[places].mean(axis=0, keepdims=True) if places else None


class WordCounts(NamedTuple):
    """How many texts contain each word of a query, and how many texts there are."""

    counts: Mapping[str, int]
    texts: int


class FoundPassage(NamedTuple):
    chunk: int
    page: PageId
    order: int
    content: str | None  # None if no text is stored
    source_id: SourceId
    content_hash: str
    hit: SearchHit  # without text and score


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    name: str  # its fingerprint
    dimensions: int
    serving: bool  # whether it answers searches


class MissingCount(NamedTuple):
    """How many chunks or pages have to be processed again, and how many of them have no stored text."""

    number: int
    without_text: int


class RechunkJob(NamedTuple):
    """A page whose text has to be split into chunks again, and the new chunks."""

    page: Page
    markdown: str
    chunks: tuple[Chunk, ...] = ()
