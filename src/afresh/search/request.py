"""What a search asks for."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from afresh.model.records import SourceId


class Mode(StrEnum):
    """Which half of the index answers: words, meanings, or both."""

    HYBRID = "hybrid"
    TEXT = "text"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """The part of the index that a search may answer from; None stands for no limit."""

    sources: tuple[SourceId, ...] | None = None
    language: str | None = None
    path: str | None = None  # a glob over the path of the address
    changed_after: datetime | None = None
    checked_after: datetime | None = None

    def __bool__(self) -> bool:
        return self.sources is not None or self.by_page

    @property
    def by_page(self) -> bool:
        """Whether more than the source of a page decides."""
        return any((self.language, self.path, self.changed_after, self.checked_after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question: what is typed, where to look, and what the answer is made of."""

    query: str
    within: Narrowed = Narrowed()
    mode: Mode = Mode.HYBRID
    limit: int = 10
    every_chunk: bool = False  # else the best of each page
