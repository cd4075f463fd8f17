"""What PostgreSQL complains about, as a sentence that says what to do."""

import socket
from collections.abc import Sequence

import asyncpg

from afresh.errors import StoreBusy, StoreDown, StoreError, StoreFull, StoreMissing
from afresh.text.redact import mask_secrets

# What asyncpg raises; the last where a connection was ended while nobody listened to it.
TROUBLES = (
    *(asyncpg.PostgresError, OSError, TimeoutError),
    *(asyncpg.InterfaceError, asyncpg.InternalClientError),
)
UNREAD = (ValueError, OverflowError)  # of an address that makes no sense
LONGEST = 200  # characters of a complaint, which may repeat what was to be written
UNREADABLE = (
    "has an address that cannot be read; in a user or a password write / as %2F, ? as %3F, # as %23, "
    "@ as %40, : as %3A and % as %25"
)
TROUBLE: Sequence[
    tuple[str, type[StoreError], str]
] = (  # by the beginning of the SQLSTATE, the longest first
    ("28P01", StoreError, "refuses the password; put it right in store.url, PGPASSWORD or ~/.pgpass"),
    (
        "28",
        StoreError,
        "does not let this user in; does the user exist, and does pg_hba.conf allow it from here?",
    ),
    ("3D000", StoreMissing, "names a database that is not there; make it with `createdb`, then crawl"),
    ("42501", StoreError, "does not let this user do that; grant it the right to create and change tables"),
    ("54", StoreError, "cannot keep that: an address or a text is too long for PostgreSQL; leave it out"),
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


def _unreached(error: BaseException) -> str:
    """Say why no connection came about, and what to do."""
    if isinstance(error, socket.gaierror):
        return "names a host that is unknown; is it spelled right, and does this machine resolve it?"
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "refuses connections; is the database server running there, and is the port right?"
    if isinstance(error, FileNotFoundError):
        return "names a socket that is not there; is the database server running on this machine?"
    if isinstance(error, TimeoutError):
        return "does not answer in time; is its server in reach, or does a firewall keep us out?"
    return "does not answer; is the database server running and in reach?"


def explain(error: BaseException, shown: str) -> StoreError:
    """The error that people see: the store, what is wrong and what to do about it."""
    if isinstance(error, asyncpg.PostgresError):
        state = str(error.sqlstate or "")
        for begins, kind, words in TROUBLE:
            if state.startswith(begins):
                return kind(f"the store {shown} {words}")
        said = str(error.args[0]) if error.args else state  # without its details, which may hold a whole row
        return StoreError(f"the store {shown} cannot be used: {said[:LONGEST]}")
    if isinstance(error, asyncpg.ClientConfigurationError):
        return StoreError(f"the store {shown} has an address that cannot be used: {mask_secrets(str(error))}")
    if isinstance(error, TROUBLES):
        return StoreDown(f"the store {shown} {_unreached(error)}")
    # What Python says of an address it cannot read may repeat a part of the password.
    return StoreError(f"the store {shown} {UNREADABLE}")
