"""What to do about a copy, and what became of it: pure, so that every order of events can be tried.

`plan` says the next step. Before a step is taken its intent is written down (`to_drop`, `to_put`), after it
what came of it (`dropped`, `put`, `seen`, `refused`). A put whose answer was lost leaves `putting` behind:
then only a listing of the store tells whether the document is there (`audit.py`).

With `delete_first` the old document goes before the new one is put. With `upload_first` it stays in `former`
until the store says that the new one is ACTIVE.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from afresh.model.records import PageStatus
from afresh.model.transitions import may_live_on
from afresh.sync.copy import Copy, Replace, Wanted
from afresh.sync.remote import Remote, RemoteState

GONE = (PageStatus.DELETED, PageStatus.REDIRECT)
STUCK = "stuck: "  # how the error of a document begins that the store does not finish; known to SQL, too


class Step(StrEnum):
    """The next thing to do about a copy."""

    NOTHING = "nothing"
    DROP = "drop"
    PUT = "put"
    LOOK = "look"
    ASK = "ask"  # only a listing tells what the store holds
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The numbers that a sync obeys."""

    recheck: timedelta = timedelta(minutes=10)  # FAILED is looked at again before it is believed
    deadline: timedelta = timedelta(minutes=30)  # of PROCESSING; after it a document is stuck, then put again
    retry: timedelta = timedelta(days=1)  # until a page that was given up is tried again
    attempts: int = 3
    audit: timedelta = timedelta(days=1)  # after which a sync lists what the store holds


USUAL = Times()


class NotDrawn(ValueError):
    """A transition that the table of states does not know: a bug."""


def plan(wanted: Wanted, order: Replace, now: datetime) -> Step:
    """The next step for a copy."""
    copy = wanted.copy
    if copy.putting:
        return Step.ASK
    if wanted.hash is None:
        return Step.DROP if holds_anything(copy) or copy.state not in GONE else Step.NOTHING
    if copy.leftovers and not _came_back(wanted, order):
        return Step.DROP
    if copy.remote_id is not None and copy.held_hash == wanted.hash:
        return _plan_held(copy, now)
    waits = copy.next_try_at is not None and copy.next_try_at > now
    if copy.state is PageStatus.ERROR and waits and copy.wanted_hash == wanted.hash:
        return Step.WAIT
    outdated = copy.remote_id is not None or bool(copy.former)
    return Step.DROP if outdated and order is Replace.DELETE_FIRST else Step.PUT


def _came_back(wanted: Wanted, order: Replace) -> bool:
    """Whether a page is there again whose documents were about to go: they serve until a new one does."""
    return order is Replace.UPLOAD_FIRST and wanted.hash is not None and wanted.copy.state in GONE


def _plan_held(copy: Copy, now: datetime) -> Step:
    if copy.state is PageStatus.ACTIVE:
        return Step.NOTHING
    return Step.WAIT if copy.next_try_at is not None and copy.next_try_at > now else Step.LOOK


def holds_anything(copy: Copy) -> bool:
    """Whether the store may hold a document of this copy."""
    return copy.putting or copy.remote_id is not None or bool(copy.former or copy.leftovers)


def move(copy: Copy, state: PageStatus, **changes: Any) -> Copy:
    """The copy in another state; only drawn transitions are possible."""
    if not may_live_on(copy.state, state):
        raise NotDrawn(f"{copy.url}: {copy.state} cannot become {state}")
    return replace(copy, state=state, **changes)


def ready(copy: Copy) -> Copy:
    """The copy waiting for its upload, whatever it was before."""
    return move(copy, PageStatus.READY_FOR_INDEXING)


def to_drop(wanted: Wanted, order: Replace) -> Copy:
    """The intent to drop: what is to go is in `leftovers`, and nothing else counts any more."""
    copy = wanted.copy
    if wanted.hash is None:
        state = PageStatus.REDIRECT if wanted.moved else PageStatus.DELETED
        gone = replace(move(copy, state), wanted_hash=None, attempts=0)
        return _cleared(gone, (*copy.former, *copy.leftovers, *_held(copy)))
    current = copy.remote_id is not None and copy.held_hash == wanted.hash
    outdated = not current and (copy.remote_id is not None or bool(copy.former))
    if not outdated or order is Replace.UPLOAD_FIRST:
        return copy
    return _cleared(ready(copy), (*copy.former, *copy.leftovers, *_held(copy)))


def _cleared(copy: Copy, leftovers: tuple[str, ...]) -> Copy:
    """The copy without a document that counts."""
    return replace(
        copy,
        remote_id=None,
        remote_name=None,
        held_hash=None,
        former=(),
        leftovers=tuple(dict.fromkeys(leftovers)),
        put_at=None,
        failed_at=None,
        next_try_at=None,
        error=None,
    )


def _held(copy: Copy) -> tuple[str, ...]:
    return () if copy.remote_id is None else (copy.remote_id,)


def dropped(copy: Copy, gone: frozenset[str]) -> Copy:
    """The copy after documents left the store."""
    left = tuple(each for each in copy.leftovers if each not in gone)
    keeps = left or copy.state in (PageStatus.ERROR, PageStatus.PROCESSING)
    return replace(copy, leftovers=left, error=copy.error if keeps else None)


def to_put(wanted: Wanted) -> Copy:
    """The intent to put: a document of this content may be there from now on."""
    copy = wanted.copy
    if copy.state in GONE:
        copy = replace(copy, former=(*copy.former, *copy.leftovers), leftovers=())
    copy = ready(copy)
    fresh = copy.wanted_hash != wanted.hash
    return move(
        copy,
        PageStatus.PROCESSING,
        former=tuple(dict.fromkeys((*copy.former, *_held(copy)))),
        remote_id=None,
        remote_name=None,
        held_hash=None,
        wanted_hash=wanted.hash,
        putting=True,
        attempts=0 if fresh else copy.attempts,
        put_at=None,
        failed_at=None,
        next_try_at=None,
        error=None,
    )


def put(copy: Copy, remote: Remote, now: datetime, times: Times = USUAL) -> Copy:
    """The copy after the store took a document."""
    taken = replace(
        copy,
        putting=False,
        remote_id=remote.id,
        remote_name=remote.name,
        held_hash=remote.mark.hash if remote.mark else copy.wanted_hash,
        put_at=now,
        former=tuple(each for each in copy.former if each != remote.id),  # a store may use an id again
        leftovers=tuple(each for each in copy.leftovers if each != remote.id),
    )
    return seen(taken, remote, now, times)


def unput(copy: Copy, error: str, *, sure: bool) -> Copy:
    """The copy after a put that brought no document; unless that is sure, only a listing tells."""
    if not sure:
        return replace(copy, error=error)
    return replace(ready(copy), putting=False, error=error)


def refused(copy: Copy, error: str) -> Copy:
    """The copy after the store would not take its document; every sync tries once more."""
    return move(copy, PageStatus.ERROR, putting=False, error=error)


def seen(copy: Copy, remote: Remote | None, now: datetime, times: Times = USUAL) -> Copy:
    """The copy after a look at its document."""
    if remote is None:
        return replace(ready(copy), remote_id=None, held_hash=None, put_at=None, failed_at=None, error=None)
    if remote.state is RemoteState.ACTIVE:
        return _active(copy)
    if copy.state is not PageStatus.PROCESSING:
        copy = move(ready(copy), PageStatus.PROCESSING)
    copy = copy if copy.put_at else replace(copy, put_at=now)
    return (
        _processing(copy, remote, now, times)
        if remote.state is RemoteState.PROCESSING
        else _failed(copy, remote, now, times)
    )


def _active(copy: Copy) -> Copy:
    if copy.state is not PageStatus.ACTIVE:
        copy = move(
            copy if copy.state is PageStatus.PROCESSING else move(ready(copy), PageStatus.PROCESSING),
            PageStatus.ACTIVE,
        )
    return replace(
        copy,
        attempts=0,
        failed_at=None,
        next_try_at=None,
        error=None,
        former=(),
        leftovers=tuple(dict.fromkeys((*copy.leftovers, *copy.former))),
    )


def _processing(copy: Copy, remote: Remote, now: datetime, times: Times) -> Copy:
    """Still under way; past the deadline it is shown as stuck, and the next sync puts it again."""
    if copy.put_at is None or now - copy.put_at < times.deadline:
        return replace(copy, failed_at=None, next_try_at=None, error=None)
    if is_stuck(copy):
        return _put_again(copy, remote, str(copy.error), now, times)
    reason = f"{STUCK}PROCESSING since {copy.put_at:%Y-%m-%d %H:%M} UTC"
    return replace(copy, failed_at=None, next_try_at=None, error=reason)


def _failed(copy: Copy, remote: Remote, now: datetime, times: Times) -> Copy:
    """FAILED can turn ACTIVE: it is looked at again before the document is put again."""
    reason = f"FAILED: {remote.reason or 'the store gives no reason'}"
    if copy.failed_at is None:
        return replace(copy, failed_at=now, next_try_at=now + times.recheck, error=reason)
    if now - copy.failed_at < times.recheck:
        return replace(copy, error=reason)
    return _put_again(copy, remote, reason, now, times)


def _put_again(copy: Copy, remote: Remote, reason: str, now: datetime, times: Times) -> Copy:
    """The copy without a document of no use, to be put again; after a few times only once a day."""
    bad = {"remote_id": None, "held_hash": None, "leftovers": (*copy.leftovers, remote.id), "failed_at": None}
    if copy.attempts + 1 < times.attempts:
        again = {"attempts": copy.attempts + 1, "next_try_at": None, "error": reason}
        return move(copy, PageStatus.READY_FOR_INDEXING, **bad, **again)
    return move(copy, PageStatus.ERROR, **bad, attempts=0, next_try_at=now + times.retry, error=reason)


def is_stuck(copy: Copy) -> bool:
    """Whether the store has been processing a document for longer than it may."""
    return copy.state is PageStatus.PROCESSING and (copy.error or "").startswith(STUCK)
