"""What the outside sees of a page whose source has external stores: their states are its state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from afresh.model.records import PageStatus
from afresh.model.reports import PageView
from afresh.sync.copy import Wanted
from afresh.sync.reconcile import is_stuck
from afresh.sync.reports import CopyView, SyncedDocument

# The first of these that a copy is in is what the page is: it is active when all its copies are.
FIRST = (PageStatus.ERROR, PageStatus.READY_FOR_INDEXING, PageStatus.PROCESSING)
CONTENT = (PageStatus.ACTIVE, *FIRST)


def copy_state(wanted: Wanted) -> PageStatus:
    """The state of a copy, with what its page holds by now in mind."""
    copy = wanted.copy
    if wanted.hash is None:
        return PageStatus.REDIRECT if wanted.moved else PageStatus.DELETED
    if copy.state is PageStatus.ACTIVE:
        return copy.state if copy.held_hash == wanted.hash else PageStatus.READY_FOR_INDEXING
    current = copy.wanted_hash == wanted.hash
    return copy.state if current and copy.state in CONTENT else PageStatus.READY_FOR_INDEXING


def copy_view(wanted: Wanted | None, sink: str) -> CopyView:
    """A copy in a store as it is shown; None: it is still to be made."""
    if wanted is None:
        return CopyView(sink=sink, state=PageStatus.READY_FOR_INDEXING)
    copy, state = wanted.copy, copy_state(wanted)
    return CopyView(
        sink=copy.sink,
        state=state,
        remote_id=copy.remote_id,
        remote_name=copy.remote_name,
        held_hash=copy.held_hash,
        stuck=state is PageStatus.PROCESSING and is_stuck(copy),
        error=copy.error,
        next_try_at=copy.next_try_at,
        updated_at=copy.updated_at,
    )


def synced_document(now: Wanted | None, **then: Any) -> SyncedDocument:
    """A document as a sync left it, beside what it is now; None: page and document are gone."""
    if now is None:
        return SyncedDocument(page_id=None, state_now=PageStatus.DELETED, **then)
    return SyncedDocument(
        page_id=now.copy.page_id,
        state_now=copy_state(now),
        remote_id_now=now.copy.remote_id,
        error_now=now.copy.error,
        **then,
    )


def with_copies(view: PageView, sinks: Sequence[str], copies: Sequence[Wanted]) -> PageView:
    """A page with its copies in the stores that are to hold it, and the status that follows."""
    known: Mapping[str, CopyView] = {each.copy.sink: copy_view(each, each.copy.sink) for each in copies}
    shown = []
    for sink in sinks:
        if sink in known:
            shown.append(known[sink])
        elif view.content_hash is not None:
            shown.append(copy_view(None, sink))
    if view.content_hash is None or not sinks:
        return replace(view, copies=tuple(shown))
    states = {each.state for each in shown}
    status = next((state for state in FIRST if state in states), view.status)
    return replace(view, status=status, copies=tuple(shown))
