"""The transitions that are possible: the table that the laws of decide and judge are held to."""

from afresh.model.records import PageStatus, RunState

PAGE: dict[PageStatus, frozenset[PageStatus]] = {
    PageStatus.PENDING: frozenset(
        {PageStatus.ACTIVE, PageStatus.ERROR, PageStatus.DELETED, PageStatus.REDIRECT}
    ),
    PageStatus.ACTIVE: frozenset({PageStatus.DELETED, PageStatus.REDIRECT}),
    PageStatus.ERROR: frozenset({PageStatus.ACTIVE, PageStatus.DELETED, PageStatus.REDIRECT}),
    PageStatus.DELETED: frozenset({PageStatus.ACTIVE, PageStatus.REDIRECT}),
    PageStatus.REDIRECT: frozenset({PageStatus.ACTIVE, PageStatus.DELETED}),
}

# The life that the outside sees, where external stores are attached: the status of a page, and while it has
# content the state of its copies. The copy of one page moves by the same table.
LIFE: dict[PageStatus, frozenset[PageStatus]] = {
    PageStatus.PENDING: frozenset(
        {PageStatus.READY_FOR_INDEXING, PageStatus.ERROR, PageStatus.DELETED, PageStatus.REDIRECT}
    ),
    PageStatus.READY_FOR_INDEXING: frozenset(
        {PageStatus.PROCESSING, PageStatus.ERROR, PageStatus.DELETED, PageStatus.REDIRECT}
    ),
    PageStatus.PROCESSING: frozenset(
        {
            PageStatus.ACTIVE,
            PageStatus.ERROR,
            PageStatus.READY_FOR_INDEXING,  # it changed, is missing or FAILED
            PageStatus.DELETED,
            PageStatus.REDIRECT,
        }
    ),
    PageStatus.ACTIVE: frozenset(
        {PageStatus.READY_FOR_INDEXING, PageStatus.DELETED, PageStatus.REDIRECT}  # the first: it changed
    ),
    PageStatus.ERROR: frozenset({PageStatus.READY_FOR_INDEXING, PageStatus.DELETED, PageStatus.REDIRECT}),
    PageStatus.DELETED: frozenset({PageStatus.READY_FOR_INDEXING, PageStatus.REDIRECT}),
    PageStatus.REDIRECT: frozenset({PageStatus.READY_FOR_INDEXING, PageStatus.DELETED}),
}

UNFINISHED = (RunState.QUEUED, RunState.RUNNING, RunState.CANCELLED)

RUN: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.CANCELLED}),
    RunState.RUNNING: frozenset(
        {
            RunState.QUEUED,  # its worker leaves, another goes on
            RunState.COMPLETED,
            RunState.PARTIAL,
            RunState.FAILED,
            RunState.CANCELLED,
            RunState.NEEDS_CONFIRMATION,
        }
    ),
    RunState.CANCELLED: frozenset(
        {RunState.QUEUED, RunState.RUNNING}
    ),  # the next command goes on where it was
    RunState.NEEDS_CONFIRMATION: frozenset({RunState.COMPLETED, RunState.PARTIAL}),
    RunState.COMPLETED: frozenset(),
    RunState.PARTIAL: frozenset(),
    RunState.FAILED: frozenset(),
}


def may_become(old: PageStatus, new: PageStatus) -> bool:
    """Whether a page may go from one status to another; staying is always allowed."""
    return old == new or new in PAGE.get(old, frozenset())


def may_live_on(old: PageStatus, new: PageStatus) -> bool:
    """The same for a page with stores attached, and for a copy."""
    return old == new or new in LIFE[old]
