"""P6: whatever happened on the way, three healthy refreshes give the index that a fresh crawl gives."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, index_of, opened
from tests.e2e.sites import page

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

PAGES = 20
STEPS = 25


class Life:
    """A site to which things happen by chance, and a knowledge base that keeps up with it."""

    def __init__(self, site: TinySite, kb: KnowledgeBase, seed: int) -> None:
        self.site = site
        self.kb = kb
        self.chance = random.Random(seed)
        self.made = 0
        self.log: list[str] = []
        self.links: dict[str, list[str]] = {"/": []}
        for _ in range(PAGES):
            self.add()

    def add(self) -> None:
        """A new page that some page links to."""
        self.made += 1
        path, parent = f"/n{self.made}", self.chance.choice(self._alive())
        self.links[path] = [self.chance.choice(self._alive())]
        self.links[parent].append(path)
        self._write(path)
        self._write(parent)

    def edit(self) -> None:
        """Other text; now and then a link goes too."""
        path = self.chance.choice(self._alive())
        if self.links[path] and self.chance.random() < 0.4:
            self.links[path].pop(self.chance.randrange(len(self.links[path])))
        self._write(path)

    def delete(self) -> None:
        """A page is not there any more; links to it stay."""
        if others := [path for path in self._alive() if path != "/"]:
            self.site.delete(self.chance.choice(others))

    def move(self) -> None:
        """A page gets a new address, and the old one redirects there."""
        if others := [path for path in self._alive() if path != "/"]:
            path = self.chance.choice(others)
            self.made += 1
            to = f"/n{self.made}"
            self.links[to] = self.links[path]
            self.site.move(path, to)

    def revive(self) -> None:
        """An address that was dead or moved has a page again."""
        if dead := [path for path in self.links if path not in self.site.paths]:
            path = self.chance.choice(dead)
            self.site.restore(path)
            self._write(path)

    async def refresh(self) -> None:
        """A look at a healthy site."""
        (report,) = await self.kb.refresh(["docs"])
        if report.state == "needs_confirmation":
            await self.kb.confirm(report.run)

    async def outage(self) -> None:
        """A look while the server is down, or while some of it fails; nothing may be lost by it."""
        if self.chance.random() < 0.5:
            self.site.down()
            (report,) = await self.kb.refresh(["docs"])
            self.site.up()
            assert (report.state, report.deleted) == ("failed", 0)
            return
        ill = self.chance.sample(self._alive(), min(4, len(self._alive())))
        for path in ill:
            self.site.fail(path, 503)
        await self.refresh()
        for path in ill:
            self.site.restore(path)

    async def step(self) -> None:
        """One thing happens."""
        plain: list[Callable[[], None]] = [
            self.add,
            self.edit,
            self.edit,
            self.delete,
            self.move,
            self.revive,
        ]
        chosen = self.chance.choice([*plain, self.refresh, self.refresh, self.outage])
        self.log.append(chosen.__name__)
        result = chosen()
        if result is not None:
            await result

    def _alive(self) -> list[str]:
        return [path for path in self.links if path in self.site.paths] or ["/"]

    def _write(self, path: str) -> None:
        text = f"Words of {path}: " + " ".join(f"t{self.chance.randrange(10_000)}" for _ in range(8))
        self.site.put(path, page(f"Page {path}", self.links[path], text))


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 121, 123])
async def test_P6_refreshes_through_a_wild_life_equal_a_fresh_crawl(
    tmp_path: Path, tiny: TinySite, work: type[InProcess], seed: int
) -> None:
    tiny.put("/", page("/"))
    async with opened(tmp_path / "kept.db") as kb:
        life = Life(tiny, kb, seed)
        await kb.crawl(tiny.url, name="docs")
        for _ in range(STEPS):
            await life.step()
        for _ in range(3):
            await life.refresh()
    async with opened(tmp_path / "fresh.db") as kb:
        await kb.crawl(tiny.url, name="docs")
    kept, fresh = index_of(tmp_path / "kept.db"), index_of(tmp_path / "fresh.db")
    assert set(kept) == set(fresh), life.log
    assert kept == fresh, life.log
    assert_sound(tmp_path / "kept.db")
