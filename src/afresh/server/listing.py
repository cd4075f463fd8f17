"""Lists in parts."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel

from afresh.model.filters import LinkPlace, LinkRecord
from afresh.server.cursors import link_cursor, number_cursor

Item = TypeVar("Item")


class Listing(BaseModel, Generic[Item]):
    """One part of a list, and where it goes on."""

    items: list[Item]
    next: str | None = None


def part(items: Sequence[Item], limit: int, cursor_of: Callable[[Item], str]) -> dict[str, object]:
    """A part of a list that was asked for one item more than is shown."""
    shown = items[:limit]
    return {"items": list(shown), "next": cursor_of(shown[-1]) if len(items) > limit else None}


def by_id(item: object) -> str:
    """A cursor behind a record."""
    return number_cursor(item.id)  # type: ignore[attr-defined]


def by_worth(link: LinkRecord) -> str:
    """A cursor behind a link."""
    return link_cursor(LinkPlace(link.score or 0.0, link.url, link.id))
