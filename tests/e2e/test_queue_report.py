"""What `status` says of the queue: claimed is what a worker that lives holds, all else waits."""

import json
from pathlib import Path

import pytest
from tests.e2e.library import EVERY_STORE, settings, url_of
from tests.store.crawler import ManualCrawler

from afresh.cli import main
from afresh.store.open import open_store
from afresh.testing import FrozenClock


@EVERY_STORE
def test_U4_F162_pages_of_a_killed_worker_wait(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    async def kill_a_worker() -> None:
        opened = await open_store(settings(store).store.url)
        crawler = await ManualCrawler.at(opened, FrozenClock())
        await crawler.begin()
        await crawler.enqueue("a", "b", "c", depth=1)
        assert len(await crawler.claim(2)) == 2  # and nobody of that name lives
        await opened.close()

    asyncio.run(kill_a_worker())
    assert main(["status", "--json", "--store", url_of(store)]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["pending"], reported["in_flight"]) == (3, 0)
    assert [(host["waiting"], host["held"]) for host in reported["hosts"]] == [(3, 0)]
    assert main(["status", "--store", url_of(store)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert ("waiting 3" in words, "claimed by workers 0" in words) == (True, True)
