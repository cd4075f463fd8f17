"""kill -9 behind every single statement of a commit and of the end of a run: each page is old or new."""

import asyncio
import shutil
from itertools import count
from pathlib import Path

import pytest
from tests.fakes.state import assert_sound, index_of
from tests.forking import forking
from tests.store.crawler import ManualCrawler, at, read

from afresh.model.fetch import Gone, Moved, NotModified, Seen
from afresh.ops.failpoints import VARIABLE, arm
from afresh.store.open import open_store
from afresh.testing import FrozenClock

BEFORE: dict[str, Seen] = {
    "": read("Root", "a", "b", "c", "d"),
    "a": read("Page a\n\nstays"),
    "b": read("Page b"),
    "c": read("Page c"),
    "d": read("Page d", "e"),
    "e": read("Page e"),
}
AFTER: dict[str, Seen] = {
    "": NotModified(),
    "a": read("Page a, edited\n\nstays", "new"),
    "b": Gone(),
    "c": Moved(to=at("moved"), status_code=301),
    "d": read("Page d"),  # nothing leads to e any more
    "e": NotModified(),
    "new": read("A new page"),
    "moved": read("Page c, moved"),
}
MAX_SECONDS = 30  # seconds until a life that should end is taken for hung


async def _look(store: Path, site: dict[str, Seen], failpoints: str = "") -> None:
    """A whole run over the site; the failpoints are armed when the first batch is ready."""
    library = await open_store(f"sqlite:///{store}")
    crawler = await ManualCrawler.at(library, FrozenClock())
    await crawler.begin()
    await crawler.enqueue("")
    await library.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    claims = await crawler.claim()
    arm({VARIABLE: failpoints})
    await crawler.commit(*[crawler.visit(claim, site[claim.page.url.removeprefix(at(""))]) for claim in claims])
    await crawler.look(site)
    await crawler.sweep()
    arm({})
    await library.close()


def _live(store: Path, failpoints: str) -> None:
    asyncio.run(_look(store, AFTER, failpoints))


def _ends(store: Path, failpoints: str) -> int:
    """How a process ends that looks at the changed site."""
    process = forking().Process(target=_live, args=(store, failpoints))
    process.start()
    process.join(MAX_SECONDS)
    assert process.exitcode is not None
    return process.exitcode


@pytest.mark.slow
async def test_F05_killed_behind_every_statement_each_page_is_old_or_new(tmp_path: Path) -> None:
    then, now, store = tmp_path / "then.db", tmp_path / "now.db", tmp_path / "killed.db"
    await _look(then, BEFORE)
    shutil.copy(then, now)
    await _look(now, AFTER)
    old, new = index_of(then), index_of(now)
    assert old != new
    for statement in count(1):
        for leftover in ("-wal", "-shm"):
            store.with_name(store.name + leftover).unlink(missing_ok=True)
        shutil.copy(then, store)
        if _ends(store, f"sql=kill@{statement}") == 0:
            break
        assert_sound(store, stable=False)
        for url, held in index_of(store).items():
            assert held in (old.get(url), new.get(url)), (statement, url)
    assert index_of(store) == new
    assert statement > 30
