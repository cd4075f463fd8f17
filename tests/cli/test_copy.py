"""What `afresh copy` says: it copies, and pages are not addresses."""

import asyncio
from pathlib import Path

from tests.store.crawler import ManualCrawler, read

from afresh.cli.maintenance_commands import _copy_summary
from afresh.cli.progress import progress_line
from afresh.events import Event, MaintenanceProgress
from afresh.model.fetch import Gone
from afresh.services.copy_store import copy_store
from afresh.store.open import open_store
from afresh.testing import FrozenClock


async def test_U4_copy_says_its_progress_as_copy_and_counts_pages_apart_from_addresses(tmp_path: Path) -> None:
    origin, target = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    store = await open_store(origin)
    crawler = await ManualCrawler.at(store, FrozenClock())
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("Page a"), "b": Gone()})
    await store.close()
    received: list[Event] = []
    done = await copy_store(origin, target, labels=(), resume=False, listener=received.append, stopping=asyncio.Event())
    reported = [progress_line(each) for each in received if isinstance(each, MaintenanceProgress)]
    assert reported
    assert all(line.startswith("copy: ") for line in reported)
    assert "1 source, 2 pages (3 URLs)" in _copy_summary(done)
