"""Compute when a page is due: by the regular interval, back-off after failures, its age and the budget."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from afresh.backoff import backoff_seconds
from afresh.dataclass import dataclass
from afresh.model.records import Page, Policy
from afresh.urls.canonical import domain_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPage:
    url: str
    next_at: datetime  # time of the next check
    written_at: datetime  # when that was decided
    answered_at: datetime | None = None  # the last time it answered; None: never


class DueCounts(NamedTuple):
    """How many pages of a source are due; pages of an open run count as due until they are checked."""

    due: int = 0  # pages whose time has come
    stale: int = 0  # of these, pages in the index
    next_at: datetime | None = None  # when the next of the others is due


def due_at(page: WaitingPage, now: datetime, max_age: float | None = None) -> datetime:
    """Return when a page is due: at its next check or, if earlier, when its last answer is `max_age` seconds old."""
    if page.written_at > now:  # ignore decisions of a wrong clock
        return min(page.next_at, now)
    if max_age is None or page.answered_at is None:
        return page.next_at
    return min(page.next_at, page.answered_at + timedelta(seconds=max_age))


def due(
    pages: Iterable[WaitingPage], now: datetime, *, max_age: float | None = None, budget: int | None = None
) -> list[str]:
    """Return at most `budget` URLs that are due, ordered by the time of their next check, then by URL.

    The order ignores `max_age`, because a page that keeps failing would always be first.
    """
    ready = sorted((page.next_at, page.url) for page in pages if due_at(page, now, max_age) <= now)
    return [url for _, url in ready[: None if budget is None else max(0, budget)]]


def next_regular_look(now: datetime, policy: Policy) -> datetime:
    return now + timedelta(seconds=policy.recheck_seconds)


def next_check_after_answer(now: datetime, page: Page, policy: Policy) -> datetime:
    """Return the time of the next check of a page that answered.

    With a plan of checks, the plan says when. Otherwise, it is after the regular interval or, with `policy.adapt`,
    after half the time since the last change, up to a limit.
    """
    if policy.looks is not None:
        return now + timedelta(seconds=policy.looks.wait(domain_of(page.url), page.rhythm))
    seconds = policy.recheck_seconds
    if policy.adapt and page.changed_at is not None:
        quiet = (now - page.changed_at).total_seconds()
        seconds = max(seconds, min(quiet / 2, policy.adapt_max_seconds))
    return now + timedelta(seconds=seconds)


def next_check_after_failure(
    now: datetime, failures: int, policy: Policy, retry_after: float | None = None
) -> datetime:
    """Return when to try a failed page again: by exponential backoff, and not before the server's Retry-After."""
    pause = backoff_seconds(failures, policy.backoff_base_seconds, policy.backoff_max_seconds)
    return now + timedelta(seconds=max(pause, retry_after or 0.0))
