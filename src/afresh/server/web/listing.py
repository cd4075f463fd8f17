"""Lists in parts, as pages show them."""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Annotated, TypeVar

from fastapi import Query

from afresh.errors import UsageError

Item = TypeVar("Item")
Word = TypeVar("Word", bound=StrEnum)
SHOWN = 50  # of one part
CHANGES = 20  # of one part: each has its difference
Filter = Annotated[str, Query(max_length=500)]
Cursor = Annotated[str | None, Query(max_length=4_000)]


async def part(
    found: Awaitable[Sequence[Item]], cursor_of: Callable[[Item], str], shown: int = SHOWN
) -> dict[str, object]:
    """What is shown of a list that was asked for one item more, and where it goes on."""
    items = await found
    here = list(items[:shown])
    return {"items": here, "more": cursor_of(here[-1]) if len(items) > shown else None}


def one_of(kind: type[Word], field: str, typed: str) -> Word | None:
    """One of the words that there are, as it was typed; None: nothing was."""
    try:
        return kind(typed) if typed else None
    except ValueError:
        raise UsageError(f"{field}: expected one of {', '.join(kind)}, got {typed[:50]!r}") from None


def number_in(field: str, typed: str, largest: int = 1_000_000) -> int | None:
    """A whole number that was typed; None: nothing was."""
    if not typed.strip():
        return None
    if not typed.strip().isdecimal() or len(typed) > 12 or int(typed) > largest:
        raise UsageError(f"{field}: expected a whole number, got {typed[:50]!r}")
    return int(typed)
