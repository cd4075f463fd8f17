"""Decide the next step for a copy, and compute its next state and its view, with pure functions.

`plan` returns the next step. Before the step its intent is stored (`to_drop`, `to_put`), and afterwards its
result (`dropped`, `put`, `seen`, `refused`). If the answer of an upload is lost, `putting` remains set, and
only a listing of the sink shows whether the document exists (`listing.py`).

With `delete_first` the old document is deleted before the new one is uploaded. With `upload_first` the old
one stays in `former` until the sink reports the new one as ACTIVE.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from afresh.dataclass import dataclass, replace
from afresh.model.records import PageStatus, may_change
from afresh.model.reports import PageView
from afresh.sync.copy import Copy, DesiredCopy, Remote, RemoteState, ReplaceOrder
from afresh.sync.reports import CopyView, SyncedDocument

GONE = (PageStatus.DELETED, PageStatus.REDIRECT)
STUCK = "stuck: "  # prefix of the error of a document that stays in processing; SQL statements use it, too
# The status of a page is the first of these states that any of its copies has; without any, the page is active.
FIRST = (PageStatus.ERROR, PageStatus.READY_FOR_INDEXING, PageStatus.PROCESSING)
CONTENT = (PageStatus.ACTIVE, *FIRST)
_VIEW_FIELDS = ("remote_id", "remote_name", "held_hash", "error", "next_try_at", "updated_at")


class CopyStep(StrEnum):
    NOTHING = "nothing"
    DROP = "drop"
    PUT = "put"
    LOOK = "look"
    ASK = "ask"  # list the sink, to find out which documents it contains
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTimes:
    recheck: timedelta = timedelta(minutes=10)  # wait after FAILED before the document is checked again
    deadline: timedelta = timedelta(minutes=30)  # maximum time of PROCESSING; then the document counts as stuck
    retry: timedelta = timedelta(days=1)  # wait before another attempt after too many failures
    attempts: int = 3
    audit: timedelta = timedelta(days=1)  # time after which a sync lists the sink again


USUAL = SyncTimes()

_BLANK: dict[str, Any] = dict.fromkeys(  # the values of these fields for a copy without a document
    ("remote_id", "remote_name", "held_hash", "put_at", "failed_at", "next_try_at", "error")
)


class UnknownTransition(ValueError):
    """A forbidden change of state, which is a bug."""


def plan(wanted: DesiredCopy, order: ReplaceOrder, now: datetime) -> CopyStep:
    copy = wanted.copy
    if copy.putting:
        return CopyStep.ASK
    if wanted.hash is None:
        return CopyStep.DROP if holds_anything(copy) or copy.state not in GONE else CopyStep.NOTHING
    came_back = order is ReplaceOrder.UPLOAD_FIRST and copy.state in GONE
    if copy.leftovers and not came_back:  # else keep old documents until the new one is active
        return CopyStep.DROP
    waits = copy.next_try_at is not None and copy.next_try_at > now
    if copy.remote_id is not None and copy.held_hash == wanted.hash:
        if copy.state is PageStatus.ACTIVE:
            return CopyStep.NOTHING
        return CopyStep.WAIT if waits else CopyStep.LOOK
    if copy.state is PageStatus.ERROR and waits and copy.wanted_hash == wanted.hash:
        return CopyStep.WAIT
    outdated = copy.remote_id is not None or bool(copy.former)
    return CopyStep.DROP if outdated and order is ReplaceOrder.DELETE_FIRST else CopyStep.PUT


def holds_anything(copy: Copy) -> bool:
    return copy.remote_id is not None or bool(copy.former or copy.leftovers)


def move(copy: Copy, state: PageStatus, **changes: Any) -> Copy:
    """Return the copy in a new state; raise UnknownTransition if that transition is not allowed."""
    if not may_change(copy.state, state):
        raise UnknownTransition(f"{copy.url}: {copy.state} cannot become {state}")
    return replace(copy, state=state, **changes)


def ready(copy: Copy) -> Copy:
    return move(copy, PageStatus.READY_FOR_INDEXING)


def to_drop(wanted: DesiredCopy, order: ReplaceOrder) -> Copy:
    """Return the copy to store before a deletion, with the documents to delete in `leftovers`."""
    copy = wanted.copy
    if wanted.hash is None:
        gone = move(copy, PageStatus.REDIRECT if wanted.moved else PageStatus.DELETED, wanted_hash=None, attempts=0)
    else:
        current = copy.remote_id is not None and copy.held_hash == wanted.hash
        outdated = not current and (copy.remote_id is not None or bool(copy.former))
        if not outdated or order is ReplaceOrder.UPLOAD_FIRST:
            return copy
        gone = ready(copy)
    leftovers = tuple(dict.fromkeys((*copy.former, *copy.leftovers, *_held(copy))))
    return replace(gone, **_BLANK, former=(), leftovers=leftovers)


def _held(copy: Copy) -> tuple[str, ...]:
    return () if copy.remote_id is None else (copy.remote_id,)


def dropped(copy: Copy, remote_id: str) -> Copy:
    left = tuple(each for each in copy.leftovers if each != remote_id)
    keeps = left or copy.state in (PageStatus.ERROR, PageStatus.PROCESSING)
    return replace(copy, leftovers=left, error=copy.error if keeps else None)


def to_put(wanted: DesiredCopy) -> Copy:
    """Return the copy to store before an upload; `putting` says that the sink may have a document from now on."""
    copy = wanted.copy
    if copy.state in GONE:
        copy = replace(copy, former=(*copy.former, *copy.leftovers), leftovers=())
    copy = ready(copy)
    return move(
        copy,
        PageStatus.PROCESSING,
        **_BLANK,
        former=tuple(dict.fromkeys((*copy.former, *_held(copy)))),
        wanted_hash=wanted.hash,
        putting=True,
        attempts=0 if copy.wanted_hash != wanted.hash else copy.attempts,
    )


def put(copy: Copy, remote: Remote, now: datetime, times: SyncTimes = USUAL) -> Copy:
    taken = replace(
        copy,
        putting=False,
        remote_id=remote.id,
        remote_name=remote.name,
        held_hash=remote.mark.hash if remote.mark else copy.wanted_hash,
        put_at=now,
        former=tuple(each for each in copy.former if each != remote.id),  # the sink may have reused an id
        leftovers=tuple(each for each in copy.leftovers if each != remote.id),
    )
    return seen(taken, remote, now, times)


def unput(copy: Copy, error: str, *, sure: bool) -> Copy:
    """Return the copy after a failed upload; `putting` stays set unless it is `sure` that no document was created."""
    if not sure:
        return replace(copy, error=error)
    return replace(ready(copy), putting=False, error=error)


def refused(copy: Copy, error: str) -> Copy:
    """Return the copy of a page that the sink refused; each later sync tries the upload once."""
    return move(copy, PageStatus.ERROR, putting=False, error=error)


def seen(copy: Copy, remote: Remote | None, now: datetime, times: SyncTimes = USUAL) -> Copy:
    if remote is None:
        return replace(ready(copy), remote_id=None, held_hash=None, put_at=None, failed_at=None, error=None)
    if remote.state is RemoteState.ACTIVE:
        return _active(copy)
    if copy.state is not PageStatus.PROCESSING:
        copy = move(ready(copy), PageStatus.PROCESSING)
    copy = copy if copy.put_at else replace(copy, put_at=now)
    judge = _processing if remote.state is RemoteState.PROCESSING else _failed
    return judge(copy, remote, now, times)


def _active(copy: Copy) -> Copy:
    if copy.state not in (PageStatus.ACTIVE, PageStatus.PROCESSING):
        copy = move(ready(copy), PageStatus.PROCESSING)
    if copy.state is not PageStatus.ACTIVE:
        copy = move(copy, PageStatus.ACTIVE)
    leftovers = tuple(dict.fromkeys((*copy.leftovers, *copy.former)))
    return replace(copy, former=(), leftovers=leftovers, attempts=0, failed_at=None, next_try_at=None, error=None)


def _processing(copy: Copy, remote: Remote, now: datetime, times: SyncTimes) -> Copy:
    """Return the copy of a document in processing; after a deadline it is marked as stuck, and then uploaded again."""
    if copy.put_at is None or now - copy.put_at < times.deadline:
        return replace(copy, failed_at=None, next_try_at=None, error=None)
    if is_stuck(copy):
        return _put_again(copy, remote, str(copy.error), now, times)
    reason = f"{STUCK}PROCESSING since {copy.put_at:%Y-%m-%d %H:%M} UTC"
    return replace(copy, failed_at=None, next_try_at=None, error=reason)


def _failed(copy: Copy, remote: Remote, now: datetime, times: SyncTimes) -> Copy:
    """Return a copy whose document failed in the sink: it is checked again later, then uploaded again if needed."""
    reason = f"FAILED: {remote.reason or 'the store gives no reason'}"
    if copy.failed_at is None:
        return replace(copy, failed_at=now, next_try_at=now + times.recheck, error=reason)
    if now - copy.failed_at < times.recheck:
        return replace(copy, error=reason)
    return _put_again(copy, remote, reason, now, times)


def _put_again(copy: Copy, remote: Remote, reason: str, now: datetime, times: SyncTimes) -> Copy:
    """Return the copy for another upload, with the bad document to delete; after many failures, wait first."""
    bad = {"remote_id": None, "held_hash": None, "leftovers": (*copy.leftovers, remote.id), "failed_at": None}
    if copy.attempts + 1 < times.attempts:
        again = {"attempts": copy.attempts + 1, "next_try_at": None, "error": reason}
        return move(copy, PageStatus.READY_FOR_INDEXING, **bad, **again)
    return move(copy, PageStatus.ERROR, **bad, attempts=0, next_try_at=now + times.retry, error=reason)


def is_stuck(copy: Copy) -> bool:
    return copy.state is PageStatus.PROCESSING and (copy.error or "").startswith(STUCK)


def copy_state(wanted: DesiredCopy) -> PageStatus:
    """Return the state of a copy; READY_FOR_INDEXING if its page has changed since the last upload."""
    copy = wanted.copy
    if wanted.hash is None:
        return PageStatus.REDIRECT if wanted.moved else PageStatus.DELETED
    if copy.state is PageStatus.ACTIVE:
        return copy.state if copy.held_hash == wanted.hash else PageStatus.READY_FOR_INDEXING
    current = copy.wanted_hash == wanted.hash
    return copy.state if current and copy.state in CONTENT else PageStatus.READY_FOR_INDEXING


def copy_view(wanted: DesiredCopy | None, sink: str) -> CopyView:
    """Return what users see of a copy; `wanted` is None if the copy does not exist yet."""
    if wanted is None:
        return CopyView(sink=sink, state=PageStatus.READY_FOR_INDEXING)
    copy, state = wanted.copy, copy_state(wanted)
    stuck = state is PageStatus.PROCESSING and is_stuck(copy)
    same: dict[str, Any] = {name: getattr(copy, name) for name in _VIEW_FIELDS}
    return CopyView(sink=copy.sink, state=state, stuck=stuck, **same)


def synced_document(now: DesiredCopy | None, **then: Any) -> SyncedDocument:
    """Return the outcome of a document in a sync (`then`), with its state `now` (None: page and document are gone)."""
    if now is None:
        return SyncedDocument(page_id=None, state_now=PageStatus.DELETED, **then)
    then |= {"remote_id_now": now.copy.remote_id, "error_now": now.copy.error}
    return SyncedDocument(page_id=now.copy.page_id, state_now=copy_state(now), **then)


def with_copies(view: PageView, sinks: Sequence[str], copies: Sequence[DesiredCopy]) -> PageView:
    """Add the copies in `sinks` to the view of a page, and the status that results from them."""
    known = {each.copy.sink: each for each in copies}
    held = [sink for sink in sinks if sink in known or view.content_hash is not None]
    views = [copy_view(known.get(sink), sink) for sink in held]
    if view.content_hash is None or not sinks:
        return replace(view, copies=tuple(views))
    states = {each.state for each in views}
    status = next((state for state in FIRST if state in states), view.status)
    return replace(view, status=status, copies=tuple(views))
