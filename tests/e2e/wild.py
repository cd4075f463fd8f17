"""A site to which things happen by chance, and a knowledge base that keeps up with it."""

import random
from collections.abc import Callable
from pathlib import Path

from tests.e2e.library import assert_sound, index_of, opened
from tests.e2e.mortal import live
from tests.e2e.sites import page

from afresh.kb import KnowledgeBase
from afresh.ops.failpoints import POINTS
from afresh.testing import TinySite

PAGES = 20
STEPS = 25


class Life:
    """What happened to the site, and what was done about it."""

    def __init__(self, site: TinySite, kb: KnowledgeBase, seed: int, store: Path | None = None) -> None:
        self.site = site
        self.kb = kb
        self.store = store  # where other processes work on it, to be killed
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
        (report,) = await self.kb.runs.refresh(["docs"])
        if report.state == "needs_confirmation":
            await self.kb.runs.confirm(report.run)

    async def outage(self) -> None:
        """A look while the server is down, or while some of it fails; nothing may be lost by it."""
        if self.chance.random() < 0.5:
            self.site.down()
            (report,) = await self.kb.runs.refresh(["docs"])
            self.site.up()
            assert (report.state, report.deleted) == ("failed", 0)
            return
        ill = self.chance.sample(self._alive(), min(4, len(self._alive())))
        for path in ill:
            self.site.fail(path, 503)
        await self.refresh()
        for path in ill:
            self.site.restore(path)

    async def kill(self) -> None:
        """A look by another process, which is killed somewhere on the way."""
        assert self.store is not None
        point = f"{self.chance.choice(list(POINTS))}=kill@{self.chance.randint(1, 6)}"
        self.log.append(point)
        live(self.store, self.site.url, "refresh", point)
        assert_sound(self.store, stable=False)

    async def step(self) -> None:
        """One thing happens."""
        plain: list[Callable[[], None]] = [self.add, self.edit, self.edit, self.delete, self.move, self.revive]
        kills = [self.kill, self.kill] if self.store else []
        chosen = self.chance.choice([*plain, self.refresh, self.refresh, self.outage, *kills])
        self.log.append(chosen.__name__)
        result = chosen()
        if result is not None:
            await result

    def _alive(self) -> list[str]:
        return [path for path in self.links if path in self.site.paths] or ["/"]

    def _write(self, path: str) -> None:
        text = f"Words of {path}: " + " ".join(f"t{self.chance.randrange(10_000)}" for _ in range(8))
        self.site.put(path, page(f"Page {path}", self.links[path], text))


async def wild_life(folder: Path, site: TinySite, seed: int, *, kills: bool = False) -> None:
    """Live through it, then take three healthy looks: the index must be that of a fresh crawl."""
    kept_file, fresh_file = folder / "kept.db", folder / "fresh.db"
    site.put("/", page("/"))
    async with opened(kept_file) as kb:
        life = Life(site, kb, seed, kept_file if kills else None)
        await kb.runs.crawl(site.url, name="docs")
        for _ in range(STEPS):
            await life.step()
        for _ in range(3):
            await life.refresh()
    async with opened(fresh_file) as kb:
        await kb.runs.crawl(site.url, name="docs")
    kept, fresh = index_of(kept_file), index_of(fresh_file)
    assert set(kept) == set(fresh), (seed, life.log)
    assert kept == fresh, (seed, life.log)
    assert_sound(kept_file)
