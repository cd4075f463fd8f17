"""What the faces show of whole stores: copied, brought up to date, and examined."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """One table of a copy, the same in both stores."""

    table: str
    rows: int
    sha256: str  # over all rows in the order of their key


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A store that was copied into another."""

    origin: str
    target: str
    sources: tuple[str, ...]
    tables: tuple[CopiedTable, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """A store that was brought up to date, or would be; numbers are those of schemas."""

    store: str
    before: int
    after: int
    newest: int  # that this afresh knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of `afresh doctor`."""

    check: str
    ok: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What open runs still have to look at."""

    waiting: int = 0
    held: int = 0  # by workers that live
    oldest: datetime | None = None  # since when the first of what waits has been due
