"""The allowed transitions of pages, copies and runs."""

from afresh.model.records import PageStatus, RunState

P, R = PageStatus, RunState

PAGE: dict[PageStatus, frozenset[PageStatus]] = {
    P.PENDING: frozenset({P.ACTIVE, P.ERROR, P.DELETED, P.REDIRECT}),
    P.ACTIVE: frozenset({P.DELETED, P.REDIRECT}),
    P.ERROR: frozenset({P.ACTIVE, P.DELETED, P.REDIRECT}),
    P.DELETED: frozenset({P.ACTIVE, P.REDIRECT}),
    P.REDIRECT: frozenset({P.ACTIVE, P.DELETED}),
}

# The status that users see if external stores are attached: the status of a page, and while it has content
# the state of its copies. A copy follows the same table. A processing or active page becomes ready again when
# it changes; a processing one also when its copy is missing or FAILED.
LIFE: dict[PageStatus, frozenset[PageStatus]] = {
    P.PENDING: frozenset({P.READY_FOR_INDEXING, P.ERROR, P.DELETED, P.REDIRECT}),
    P.READY_FOR_INDEXING: frozenset({P.PROCESSING, P.ERROR, P.DELETED, P.REDIRECT}),
    P.PROCESSING: frozenset({P.ACTIVE, P.ERROR, P.READY_FOR_INDEXING, P.DELETED, P.REDIRECT}),
    P.ACTIVE: frozenset({P.READY_FOR_INDEXING, P.DELETED, P.REDIRECT}),
    P.ERROR: frozenset({P.READY_FOR_INDEXING, P.DELETED, P.REDIRECT}),
    P.DELETED: frozenset({P.READY_FOR_INDEXING, P.REDIRECT}),
    P.REDIRECT: frozenset({P.READY_FOR_INDEXING, P.DELETED}),
}

UNFINISHED = (R.QUEUED, R.RUNNING, R.CANCELLED)

RUN: dict[RunState, frozenset[RunState]] = {
    R.QUEUED: frozenset({R.RUNNING, R.CANCELLED}),
    R.RUNNING: frozenset(set(R) - {R.RUNNING}),  # queued: its worker leaves, another one continues
    R.CANCELLED: frozenset({R.QUEUED, R.RUNNING}),  # the next command resumes it
    R.NEEDS_CONFIRMATION: frozenset({R.COMPLETED, R.PARTIAL}),
    **dict.fromkeys((R.COMPLETED, R.PARTIAL, R.FAILED), frozenset[RunState]()),
}


def may_become(old: PageStatus, new: PageStatus) -> bool:
    """Return whether a page may change from one status to another; staying is always allowed."""
    return old == new or new in PAGE.get(old, frozenset())


def may_live_on(old: PageStatus, new: PageStatus) -> bool:
    """Return whether a page with external stores, or a copy, may change from one status to another."""
    return old == new or new in LIFE[old]
