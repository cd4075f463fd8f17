"""Where a copy begins and where it ends: rows of tables, read in the order of their keys, written in batches.

A row travels as SQLite keeps it: times as text of one form, vectors as bytes.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from afresh.store.tables import Table

Record = tuple[Any, ...]
Key = tuple[Any, ...]
MARKER = "afresh_copying"  # a table that is there until a copy is finished


class Unfinished(NamedTuple):
    """A copy that was begun: from where, and of which sources."""

    origin: str
    sources: str


class Origin(Protocol):
    """A store as it was at one moment, whatever happens to it meanwhile."""

    async def count(self, table: Table, sources: Sequence[int] | None = None) -> int: ...

    async def read(
        self, table: Table, after: Key | None, limit: int, sources: Sequence[int] | None = None
    ) -> Sequence[Record]:
        """The next rows after a key, of some sources or all."""
        ...


class Target(Origin, Protocol):
    """A store that is filled."""

    async def unfinished(self) -> Unfinished | None: ...

    async def begin(self, copy: Unfinished) -> None:
        """Mark the store as half a copy, which nobody else may use."""
        ...

    async def last(self, table: Table) -> Key | None:
        """The key of the last row that is there."""
        ...

    def keeps(self, table: Table) -> bool:
        """Whether rows of a table can be kept here."""
        ...

    async def write(self, table: Table, rows: Sequence[Record]) -> None:
        """Add rows, all or none."""
        ...

    async def finish(self) -> None:
        """Let others use the store."""
        ...


class End(Target, Protocol):
    """A store that is open for copying."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
