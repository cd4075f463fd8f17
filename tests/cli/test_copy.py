"""What `afresh copy` says: it copies, and pages are not addresses."""

import asyncio
from pathlib import Path

from tests.store.desk import Desk, read

from afresh.cli.maintenance_commands import _drawn
from afresh.cli.progress import line_of
from afresh.events import Event, MaintenanceProgress
from afresh.model.fetch import Gone
from afresh.services.copy_store import copy_store
from afresh.store.open import open_store
from afresh.testing import FrozenClock


async def test_U4_copy_tells_its_progress_as_copy_and_counts_pages_apart_from_addresses(
    tmp_path: Path,
) -> None:
    origin, target = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    store = await open_store(origin)
    desk = await Desk.at(store, FrozenClock())
    await desk.crawl({"": read("Root", "a", "b"), "a": read("Page a"), "b": Gone()})
    await store.close()
    heard: list[Event] = []
    done = await copy_store(
        origin, target, labels=(), resume=False, listener=heard.append, stopping=asyncio.Event()
    )
    told = [line_of(each) for each in heard if isinstance(each, MaintenanceProgress)]
    assert told
    assert all(line.startswith("copy: ") for line in told)
    assert "1 source, 2 pages (3 addresses on record)" in _drawn(done)
