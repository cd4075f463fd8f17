"""Syncs that follow runs, and how they end."""

import asyncio
from collections.abc import Sequence

from afresh.core.errors import RunBusy
from afresh.core.events import ignore
from afresh.core.sync_views import SyncReport
from afresh.engine.following import Following


async def test_syncs_end_when_nobody_says_stop_and_an_external_store_is_busy_for_ever() -> None:
    tried = asyncio.Event()

    async def busy(name: str) -> Sequence[SyncReport]:
        tried.set()
        raise RunBusy("another process syncs it")

    following = Following(busy, asyncio.Event(), tell=lambda report: None, listener=ignore)
    following.want(["out"])
    await tried.wait()
    async with asyncio.timeout(5):
        await following.drain()
