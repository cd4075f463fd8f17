"""Watching sources on this machine: one keeper each, a few runs at a time, until told to stop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from afresh.errors import UsageError
from afresh.model.records import Listed, RunMode, Source
from afresh.model.reports import RunReport
from afresh.ports import Lookout
from afresh.store.store import Store
from afresh.urls.files import is_file_url
from afresh.watch.options import Sights, WatchTimes
from afresh.watch.source_watcher import Keeper, Look

AT_A_TIME = 3  # runs side by side, so that a slow list of links holds up no folder


def watched_of(meant: Mapping[str, Sequence[Source]], everything: Sequence[Source]) -> list[Source]:
    """The sources to watch: of those that labels mean, or of all, what is on this machine."""
    for label, sources in meant.items():
        if not any(map(_is_watched, sources)):
            raise UsageError(
                f"{label} ({sources[0].url}) is no folder or file of this machine, so its changes cannot be "
                f"heard: `afresh refresh {label}` looks at it"
            )
    chosen = [source for sources in meant.values() for source in sources] if meant else everything
    found = {source.id: source for source in chosen if _is_watched(source)}
    if not found:
        raise UsageError("there is no folder and no list of links to watch: `afresh crawl FOLDER` adds one")
    return list(found.values())


def _is_watched(source: Source) -> bool:
    return is_file_url(source.url) and source.kind != "git"  # commits are not told by events of files


class Watch:
    """Keeps sources fresh side by side."""

    def __init__(
        self,
        store: Store,
        lookout: Callable[[Source], Lookout],
        look: Look,
        stopping: asyncio.Event,
        times: WatchTimes,
        tell: Sights,
    ) -> None:
        self._store = store
        self._lookout = lookout
        self._look = look
        self._stopping = stopping
        self._times = times
        self._tell = tell

    async def keep(self, sources: Sequence[Source]) -> None:
        """Watch until told to stop, or until no source is left."""
        turns = asyncio.Semaphore(AT_A_TIME)

        async def look(source: Source, mode: RunMode, pages: Sequence[Listed]) -> RunReport | None:
            async with turns:
                if self._stopping.is_set():
                    return None
                return await self._look(source, mode, pages)

        keepers = [
            Keeper(source, self._store, self._lookout, look, self._stopping, self._times, self._tell)
            for source in sources
        ]
        waking = asyncio.create_task(self._wake(keepers))
        try:
            async with asyncio.TaskGroup() as group:
                for keeper in keepers:
                    group.create_task(keeper.keep())
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from trouble
        finally:
            waking.cancel()

    async def _wake(self, keepers: Sequence[Keeper]) -> None:
        await self._stopping.wait()
        for keeper in keepers:
            keeper.wake()
