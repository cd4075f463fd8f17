"""When to look again, and who is next: the ordinary interval, back-off after failures, age and budget."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from afresh.model.records import Page, Policy
from afresh.urls.canonical import domain_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A page that waits for its next look."""

    url: str
    next_at: datetime  # when it was decided to look again
    written_at: datetime  # when that was decided
    answered_at: datetime | None = None  # when its last look was answered; None: never


class DueTally(NamedTuple):
    """What is due in a source: a page that a run took up is, until it was looked at."""

    due: int = 0  # pages whose time has come
    stale: int = 0  # of these, pages that are in the index
    next_at: datetime | None = None  # when the next of the others is due


def due_at(page: Waiting, now: datetime, max_age: float | None = None) -> datetime:
    """When a page is due: at its next look, or as soon as its last answer is `max_age` seconds old."""
    if page.written_at > now:  # by a clock that ran ahead: what it decided is worth nothing
        return min(page.next_at, now)
    if max_age is None or page.answered_at is None:
        return page.next_at
    return min(page.next_at, page.answered_at + timedelta(seconds=max_age))


def due(
    pages: Iterable[Waiting], now: datetime, *, max_age: float | None = None, budget: int | None = None
) -> list[str]:
    """The pages to look at now, by the time of their next look, then by address; at most `budget`.

    An age makes a page due but does not move it forward: one that fails for long would take every turn.
    """
    ready = sorted((page.next_at, page.url) for page in pages if due_at(page, now, max_age) <= now)
    return [url for _, url in ready[: None if budget is None else max(0, budget)]]


def backoff_seconds(failures: int, base: float, longest: float) -> float:
    """The pause after the n-th failure in a row: base, doubled each time, never above `longest`."""
    if failures < 1:
        return 0.0
    doublings = min(failures - 1, 60)
    return float(min(longest, base * 2**doublings))


def next_regular_look(now: datetime, policy: Policy) -> datetime:
    """When a page that answered is looked at again."""
    return now + timedelta(seconds=policy.recheck_seconds)


def next_look_after_answer(now: datetime, page: Page, policy: Policy) -> datetime:
    """The same where the interval is learned: when a look is worth its price, if there is a plan of looks.

    Else half as long as the page has stayed as it is, within bounds.
    """
    if policy.looks is not None:
        return now + timedelta(seconds=policy.looks.wait(domain_of(page.url), page.rhythm))
    if not policy.adapt or page.changed_at is None:
        return next_regular_look(now, policy)
    quiet = (now - page.changed_at).total_seconds()
    seconds = max(policy.recheck_seconds, min(quiet / 2, policy.adapt_max_seconds))
    return now + timedelta(seconds=seconds)


def next_look_after_failure(
    now: datetime, failures: int, policy: Policy, retry_after: float | None = None
) -> datetime:
    """When a page that failed is tried again: never before the server's Retry-After."""
    pause = backoff_seconds(failures, policy.backoff_base_seconds, policy.backoff_max_seconds)
    return now + timedelta(seconds=max(pause, retry_after or 0.0))
