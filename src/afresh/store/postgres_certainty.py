"""Whether a transaction was committed whose connection was lost before the server could say so.

A call that is made again after a commit nobody heard of would claim other pages, or find its own run busy.
"""

import asyncio

import asyncpg

from afresh.store.postgres_trouble import TROUBLES

NUMBER = "select pg_current_xact_id_if_assigned()::text"
STATUS = "select pg_xact_status($1::text::xid8)"
SECONDS = 60.0  # that a server which is away is waited for
PAUSE = 0.2
CONNECT_SECONDS = 10.0
UNDECIDED = "in progress"


async def was_committed(url: str, number: str) -> bool:
    """Ask the server, as soon as it is back, how a transaction ended; if it stays away, that is raised."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS
    while True:
        try:
            status = await _status(url, number)
        except TROUBLES:
            if loop.time() >= deadline:
                raise
        else:
            if status != UNDECIDED or loop.time() >= deadline:
                return bool(status == "committed")
        await asyncio.sleep(PAUSE)


async def _status(url: str, number: str) -> str | None:
    """What the server says, on a connection of its own: all those of the pool may wait for the same."""
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    try:
        status: str | None = await connection.fetchval(STATUS, number)
    finally:
        connection.terminate()
    return status
