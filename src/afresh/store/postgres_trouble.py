"""What PostgreSQL complains about, as a sentence that says what to do."""

from collections.abc import Sequence

import asyncpg

from afresh.core.errors import StoreBusy, StoreDown, StoreError, StoreFull, StoreMissing

# What asyncpg raises; the last where a connection was ended while nobody listened to it.
TROUBLES = (
    *(asyncpg.PostgresError, OSError, TimeoutError),
    *(asyncpg.InterfaceError, asyncpg.InternalClientError),
)
LONGEST = 200  # characters of a complaint, which may repeat what was to be written
TROUBLE: Sequence[
    tuple[str, type[StoreError], str]
] = (  # by the beginning of the SQLSTATE, the longest first
    ("28", StoreError, "refuses the user or the password; put them right in store.url"),
    ("3D000", StoreMissing, "names a database that is not there; make it with `createdb`, then crawl"),
    ("42501", StoreError, "does not let this user do that; grant it the right to create and change tables"),
    ("53100", StoreFull, "has no room to grow: disk full on the database server; make room there"),
    ("53300", StoreDown, "has no connection to spare; raise max_connections or run fewer workers"),
    ("53", StoreDown, "is short of memory or of something else on its server"),
    ("57014", StoreDown, "cut a statement short; is statement_timeout too small for this user?"),
    ("57", StoreDown, "is being stopped or started"),
    ("08", StoreDown, "has closed the connection"),
    ("25P02", StoreError, "took nothing of a transaction that had failed"),
    ("25P03", StoreDown, "ended a transaction that slept"),
    ("25006", StoreDown, "can only be read: it is a replica, or its server is set so"),
    ("40", StoreBusy, "is written to by others at the same place"),
    ("55P03", StoreBusy, "is kept locked by another process"),
    ("23", StoreBusy, "was changed by another process in the meantime"),
)


def explain(error: BaseException, shown: str) -> StoreError:
    """The error that people see: the store, what is wrong and what to do about it."""
    if isinstance(error, asyncpg.PostgresError):
        state = str(error.sqlstate or "")
        for begins, kind, words in TROUBLE:
            if state.startswith(begins):
                return kind(f"the store {shown} {words}")
        return StoreError(f"the store {shown} cannot be used: {str(error)[:LONGEST]}")
    if isinstance(error, TROUBLES):
        return StoreDown(f"the store {shown} does not answer; is the database server running and in reach?")
    return StoreError(f"the store {shown} cannot be used: {error}")
