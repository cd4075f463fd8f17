"""The allowed transitions of pages without external stores and of runs, which decisions must follow."""

from afresh.model.records import PageStatus, RunState

P, R = PageStatus, RunState

PAGE: dict[PageStatus, frozenset[PageStatus]] = {
    P.PENDING: frozenset({P.ACTIVE, P.ERROR, P.DELETED, P.REDIRECT}),
    P.ACTIVE: frozenset({P.DELETED, P.REDIRECT}),
    P.ERROR: frozenset({P.ACTIVE, P.DELETED, P.REDIRECT}),
    P.DELETED: frozenset({P.ACTIVE, P.REDIRECT}),
    P.REDIRECT: frozenset({P.ACTIVE, P.DELETED}),
}

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
