"""What a dialect offers the store: transactions in which named statements run."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from afresh.store.news import News

Row = Mapping[str, Any]


class Session(Protocol):
    """Runs named statements inside one transaction."""

    async def all(self, name: str, /, **params: object) -> Sequence[Row]: ...

    async def each(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> Sequence[Sequence[Row]]:
        """The rows of one statement for each set of parameters, in one go."""
        ...

    async def one(self, name: str, /, **params: object) -> Row | None: ...

    async def run(self, name: str, /, **params: object) -> int:
        """Run a statement and return how many rows it touched."""
        ...

    async def many(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> None: ...

    async def turn(self, source: int) -> None:
        """Wait until no other transaction has its turn at a source."""
        ...


class Database(Protocol):
    """A place where sessions can be opened."""

    @property
    def news(self) -> News:
        """News of work that others have made."""
        ...

    @property
    def has_vectors(self) -> bool:
        """Return whether vectors can be kept here."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written here."""
        ...

    def write(self, source: int | None = None) -> AbstractAsyncContextManager[Session]:
        """One transaction that is whole or absent; of those on one source, one at a time."""
        ...

    def read(self) -> AbstractAsyncContextManager[Session]:
        """A consistent snapshot."""
        ...

    async def size_bytes(self) -> int: ...

    async def reclaim_space(self) -> int | None:
        """Give free room back to the disk; how many bytes, None where it is done without us."""
        ...

    async def trouble(self) -> str | None:
        """What is broken in the database or its text index, or None."""
        ...

    async def close(self) -> None: ...
