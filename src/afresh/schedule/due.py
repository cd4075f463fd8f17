"""Compute which pages are due, by the time of their next check, their age and the budget."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from afresh.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPage:
    url: str
    next_at: datetime  # time of the next check
    written_at: datetime  # when that was decided
    answered_at: datetime | None = None  # the last time it answered; None: never


class DueCounts(NamedTuple):
    """How many pages of a source are due, how many of these are indexed, and when the next page becomes due.

    A page that an open run will check counts as due until it is checked.
    """

    due: int = 0  # pages whose time has come
    stale: int = 0  # of these, pages in the index
    next_at: datetime | None = None  # when the next page becomes due


def due_at(page: WaitingPage, now: datetime, max_age: float | None = None) -> datetime:
    """Return the time of the next check or, if earlier, the time when the last answer is `max_age` seconds old."""
    if page.written_at > now:  # ignore decisions of a wrong clock
        return min(page.next_at, now)
    if max_age is None or page.answered_at is None:
        return page.next_at
    return min(page.next_at, page.answered_at + timedelta(seconds=max_age))


def due(
    pages: Iterable[WaitingPage], now: datetime, *, max_age: float | None = None, budget: int | None = None
) -> list[str]:
    """Return the due URLs (at most `budget`), ordered by the time of their next check.

    A page is also due if its last answer is at least `max_age` seconds old. The order does not depend on the
    last answer, because a page that keeps failing would always be first.
    """
    ready = sorted((page.next_at, page.url) for page in pages if due_at(page, now, max_age) <= now)
    return [url for _, url in ready[: None if budget is None else max(0, budget)]]
