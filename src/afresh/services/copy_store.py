"""The use case of moving a knowledge base into another store."""

import asyncio
import time
from collections.abc import Sequence

from afresh.config.store_url import file_of
from afresh.errors import ConfigError, StoreError, UsageError
from afresh.events import Listener, ignore
from afresh.model.store_reports import Copied
from afresh.ops.failpoints import arm
from afresh.ports import Access
from afresh.services.resolve import exact_sources
from afresh.store.copy_ends import Unfinished
from afresh.store.copying import copy, end_of, prepare
from afresh.store.open import is_unfinished, open_store
from afresh.text.redact import mask_secrets


async def copy_store(
    origin: str,
    target: str,
    *,
    labels: Sequence[str] = (),
    resume: bool = False,
    listener: Listener = ignore,
    stopping: asyncio.Event | None = None,
) -> Copied:
    """Copy a store, or some of its sources, into an empty one; what was there, row by row the same."""
    arm()
    began, shown = time.monotonic(), (_shown(origin), _shown(target))
    if shown[0] == shown[1]:
        raise UsageError("both stores are the same")
    sources = await _sources(origin, labels)
    if not await is_unfinished(target):
        store = await open_store(target, Access.CREATE)
        await store.close()
    async with end_of(origin, reading=True) as begin, end_of(target, reading=False) as end:
        await prepare(end, Unfinished(shown[0], ", ".join(sorted(labels))), resume=resume)
        numbers = sorted(sources.values()) if labels else None
        tables = await copy(begin, end, numbers, listener, stopping or asyncio.Event())
    return Copied(
        origin=shown[0],
        target=shown[1],
        sources=tuple(sorted(sources)),
        tables=tuple(tables),
        seconds=round(time.monotonic() - began, 3),
    )


async def _sources(origin: str, labels: Sequence[str]) -> dict[str, int]:
    """The sources that are copied, by label."""
    store = await open_store(origin, Access.READ)
    try:
        meant = [await exact_sources(store, label) for label in labels]
        chosen = [source for sources in meant for source in sources] or await store.sources.all()
        return {source.label: int(source.id) for source in chosen}
    finally:
        await store.close()


def _shown(url: str) -> str:
    """A store as one name that can be shown: a file by its whole path."""
    try:
        file = file_of(url)
    except ConfigError as wrong:
        raise UsageError(f"a store is sqlite:///FILE or postgresql://…: {wrong}") from None
    if file is None:
        return mask_secrets(url)
    try:
        return f"sqlite:///{file.resolve()}"
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from error
