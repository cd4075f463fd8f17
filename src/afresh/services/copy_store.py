"""Copy a store into another one."""

import asyncio
import time
from collections.abc import Sequence

from afresh.config.forms import store_file
from afresh.errors import ConfigError, StoreError, UsageError
from afresh.events import Listener, ignore
from afresh.model.reports import CopyReport
from afresh.ops.failpoints import arm
from afresh.ports import StoreAccess
from afresh.services.resolve import labelled_sources
from afresh.store.copy import StoreCopy, UnfinishedCopy, end_of
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
) -> CopyReport:
    """Copy a store, or some of its sources, row by row into an empty store; with `resume`, continue a stopped copy."""
    arm()
    began, names = time.monotonic(), (_display_name(origin), _display_name(target))
    if names[0] == names[1]:
        raise UsageError("both stores are the same: name another target")
    sources = await _sources(origin, labels)
    if not await is_unfinished(target):
        store = await open_store(target, StoreAccess.CREATE)
        await store.close()
    async with end_of(origin, reading=True) as begin, end_of(target, reading=False) as end:
        numbers = sorted(sources.values()) if labels else None
        copying = StoreCopy(begin, end, numbers, listener, stopping or asyncio.Event())
        await copying.prepare(UnfinishedCopy(names[0], ", ".join(sorted(set(labels)))), resume=resume)
        tables = await copying.run()
    store = await open_store(target, StoreAccess.CHANGE)
    try:
        await store.vectors.encode()
    finally:
        await store.close()
    return CopyReport(
        origin=names[0],
        target=names[1],
        sources=tuple(sorted(sources)),
        tables=tuple(tables),
        seconds=round(time.monotonic() - began, 3),
    )


async def _sources(origin: str, labels: Sequence[str]) -> dict[str, int]:
    store = await open_store(origin, StoreAccess.READ)
    try:
        chosen = await labelled_sources(store, labels) or await store.sources.all()
        return {source.label: int(source.id) for source in chosen}
    finally:
        await store.close()


def _display_name(url: str) -> str:
    """Return the name of a store for display: the absolute path of a file, or a URL without secrets."""
    try:
        file = store_file(url)
    except ConfigError:
        raise UsageError(f"{mask_secrets(url)!r} is not a store: expected sqlite:///FILE or postgresql://…") from None
    if file is None:
        return mask_secrets(url)
    try:
        return f"sqlite:///{file.resolve()}"
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from error
