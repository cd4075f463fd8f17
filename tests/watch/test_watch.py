"""Keeping a source fresh by what is heard: when which look is had, and that nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.stores import new_store

from afresh.errors import ConfigError, EmbedderUnavailable, RunBusy, StoreDamaged, UsageError
from afresh.events import Notice
from afresh.model.records import ListedUrl, RunId, RunMode, Source, SourceId
from afresh.model.reports import RunReport
from afresh.ports import ChangedPaths
from afresh.store.store import Store
from afresh.watch import watcher
from afresh.watch.watcher import Sight, Watcher, WatchTimes, watched_of

NOW = datetime(2026, 3, 4, tzinfo=UTC)
PATIENCE = 30
TIMES = WatchTimes(debounce=0.01, rescan=3_600, again=3_600, tick=0.01)


@dataclass
class Ground:
    """A root that a test changes; hears only what it is told."""

    place: str = "/docs"
    there: bool = True
    fault: OSError | None = None
    everything: bool = False
    opened: int = 0
    closed: int = 0
    heard: Callable[[Sequence[str]], None] = field(default=lambda paths: None)
    lost: Callable[[str], None] = field(default=lambda why: None)

    def of(self, source: Source) -> "Ground":
        if "bogus" in source.rules:
            raise ConfigError("unknown rule bogus")
        return self

    def open(self, heard: Callable[[Sequence[str]], None], lost: Callable[[str], None]) -> None:
        if not self.there:
            raise FileNotFoundError(self.place)
        if self.fault:
            raise self.fault
        self.heard, self.lost = heard, lost
        self.opened += 1

    def close(self) -> None:
        self.closed += 1

    def stands(self) -> bool:
        return self.there

    def sift(self, paths: Iterable[str]) -> ChangedPaths:
        found = sorted(paths)
        there = [
            ListedUrl(f"file://{path}", 0) for path in found if "gone" not in path and "dust" not in path
        ]
        others = [f"file://{path}" for path in found if "gone" in path]
        return ChangedPaths(there, others, self.everything)


class Scene:
    """One watched source; a test waits for looks and for what is told."""

    def __init__(self, ground: Ground, store: Store, source: Source, times: WatchTimes) -> None:
        self.ground, self.store, self.source = ground, store, source
        self.looks: asyncio.Queue[tuple[RunMode, list[str]]] = asyncio.Queue()
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.troubles: list[Exception] = []
        self.found = 0
        self.stopping = asyncio.Event()
        self.gate = asyncio.Event()  # looks last until it is open
        self.gate.set()
        watch = Watcher(store, ground.of, self._look, self.stopping, times, self._tell)
        self.task = asyncio.create_task(watch.keep([source]))

    async def _look(self, source: Source, mode: RunMode, pages: Sequence[ListedUrl]) -> RunReport:
        self.looks.put_nowait((mode, [page.url for page in pages]))
        await self.gate.wait()
        if self.troubles:
            raise self.troubles.pop(0)
        plain = RunReport(run=RunId(1), source="docs", version=None, mode=mode, state="completed")
        return replace(plain, new=self.found)

    def _tell(self, sight: Sight) -> None:
        if isinstance(sight, Notice):
            self.told.put_nowait(sight.text)

    async def look(self) -> tuple[RunMode, list[str]]:
        async with asyncio.timeout(PATIENCE):
            return await self.looks.get()

    async def notice(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self.told.get()

    async def end(self) -> None:
        self.stopping.set()
        async with asyncio.timeout(PATIENCE):
            await self.task


@asynccontextmanager
async def scene(
    ground: Ground | None = None,
    times: WatchTimes = TIMES,
    *,
    kind: str = "folder",
    rules: Mapping[str, object] | None = None,
) -> AsyncIterator[Scene]:
    with TemporaryDirectory() as folder:
        async with new_store(Path(folder), Store) as store:
            source = await store.sources.add(
                name="docs",
                version=None,
                kind=kind,
                url="file:///docs",
                rules=rules or {},
                policy={},
                now=NOW,
            )
            made = Scene(ground or Ground(), store, source, times)
            try:
                yield made
                await made.end()
                assert made.ground.opened == made.ground.closed
            finally:
                made.task.cancel()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "RETRIES", (0.01, 0.02))


ALL = (RunMode.REFRESH, list[str]())


async def test_everything_first_and_then_just_what_is_heard_of() -> None:
    async with scene() as at:
        assert await at.look() == ALL
        assert at.ground.opened == 1, "it listens before it lists"
        assert await at.notice() == "docs is watched"
        at.ground.heard(["/docs/b.md", "/docs/a.md"])
        assert await at.look() == (RunMode.CHECK, ["file:///docs/a.md", "file:///docs/b.md"])


async def test_a_source_with_wrong_settings_is_watched_when_they_are_right() -> None:
    async with scene(rules={"bogus": 1}) as at:
        assert await at.notice() == "docs: unknown rule bogus; it is watched when its settings are right"
        await at.store.sources.replace_rules(at.source.id, {}, {}, NOW)
        assert await at.look() == ALL
        assert await at.notice() == "docs is watched again"


async def test_what_means_nothing_wakes_nothing() -> None:
    async with scene() as at:
        await at.look()
        at.ground.heard(["/docs/dust", "/docs/gone-and-never-known"])
        at.ground.heard(["/docs/a.md"])
        seen = await at.look()
        while "file:///docs/a.md" not in seen[1]:
            seen = await at.look()
        assert seen == (RunMode.CHECK, ["file:///docs/a.md"])
        assert at.looks.empty()


async def test_a_list_of_links_is_looked_at_for_what_is_due() -> None:
    async with scene(Ground(everything=True), kind="links") as at:
        assert await at.look() == (RunMode.DUE, [])
        at.ground.heard(["/docs"])
        assert await at.look() == (RunMode.DUE, [])


async def test_F85_a_burst_is_one_listing() -> None:
    async with scene() as at:
        await at.look()
        at.ground.heard([f"/docs/{number}.md" for number in range(10_000)])
        assert await at.look() == ALL
        assert at.looks.empty()


async def test_F85_what_the_system_lost_is_found_by_listing_again_after_changes() -> None:
    """Of an overflow nothing is heard: any change is followed by a listing, once, until the next one."""
    async with scene(times=WatchTimes(debounce=0.01, rescan=3_600, again=0.05, tick=0.01)) as at:
        await at.look()
        at.ground.heard(["/docs/the-only-one-heard.md"])
        assert (await at.look())[0] is RunMode.CHECK
        at.found = 1
        assert await at.look() == ALL
        at.found = 0
        assert await at.look() == ALL, "what was not heard may be more"
        at.ground.heard(["/docs/a.md"])
        assert (await at.look())[0] is RunMode.CHECK, "a listing that found nothing is the last"


async def test_a_rescan_comes_without_any_event() -> None:
    async with scene(times=WatchTimes(debounce=0.01, rescan=0.05, again=60, tick=0.01)) as at:
        assert [await at.look() for _ in range(3)] == [ALL] * 3


async def test_F85_when_hearing_ends_it_is_begun_anew_and_everything_is_listed() -> None:
    async with scene() as at:
        await at.look()
        at.ground.lost("the limit of watches is reached")
        assert await at.look() == ALL
        assert (at.ground.opened, at.ground.closed) == (2, 1)


async def test_where_nothing_can_be_heard_it_is_listed_again_and_again() -> None:
    ground = Ground(fault=OSError("OS file watch limit reached"))
    async with scene(ground, WatchTimes(debounce=0.01, again=0.02, tick=0.01)) as at:
        assert "changes cannot be heard (OS file watch limit reached)" in await at.notice()
        assert [await at.look() for _ in range(3)] == [ALL] * 3
        assert await at.notice() == "docs is watched"
        ground.fault = None
        assert await at.notice() == "docs is watched again"
        assert at.told.empty(), "told once"


async def test_F80_a_root_that_vanishes_is_told_once_and_watched_again_when_it_is_back() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        at.ground.there = False
        at.ground.heard(["/docs", "/docs/a.md"])
        assert "/docs is not there: its pages are kept" in await at.notice()
        at.ground.there = True
        assert await at.notice() == "docs is watched again"
        assert await at.look() == ALL
        assert at.told.empty()
        assert at.looks.empty()


async def test_while_another_process_looks_it_is_tried_again_and_nothing_is_lost() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        at.troubles = [RunBusy("run 3 of docs is already in progress"), RunBusy("still")]
        at.ground.heard(["/docs/a.md"])
        assert (await at.look())[0] is RunMode.CHECK
        assert [await at.look() for _ in range(2)] == [ALL, ALL]
        assert at.told.empty(), "that is nothing to worry about"


async def test_trouble_that_passes_is_told_once_and_tried_again() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        at.troubles = [EmbedderUnavailable("no key"), EmbedderUnavailable("no key")]
        at.ground.heard(["/docs/a.md"])
        assert [(await at.look())[0] for _ in range(3)] == [RunMode.CHECK, *[RunMode.REFRESH] * 2]
        assert await at.notice() == "docs: no key; it is tried again"
        assert at.told.empty()


async def test_a_broken_store_ends_it() -> None:
    async with scene() as at:
        await at.look()
        at.troubles = [StoreDamaged("the store is broken")]
        at.ground.heard(["/docs/a.md"])
        await asyncio.wait({at.task})
        with pytest.raises(StoreDamaged):
            await at.task
        at.task = asyncio.create_task(asyncio.sleep(0))


async def test_a_source_that_is_removed_is_no_longer_watched() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        await at.store.sources.remove(at.source.id, NOW)
        at.ground.heard(["/docs/a.md"])
        assert await at.notice() == "docs: it was removed, so it is no longer watched"
        async with asyncio.timeout(PATIENCE):
            await at.task


async def test_a_source_that_is_removed_while_its_settings_are_wrong_is_no_longer_watched() -> None:
    async with scene(rules={"bogus": 1}) as at:
        await at.notice()
        await at.store.sources.remove(at.source.id, NOW)
        assert await at.notice() == "docs: it was removed, so it is no longer watched"
        await at.task


async def test_what_is_heard_during_a_look_is_looked_at_next() -> None:
    async with scene() as at:
        await at.look()
        at.gate.clear()
        at.ground.heard(["/docs/a.md"])
        assert await at.look() == (RunMode.CHECK, ["file:///docs/a.md"])
        at.ground.heard(["/docs/a.md", "/docs/b.md"])
        at.gate.set()
        assert await at.look() == (RunMode.CHECK, ["file:///docs/a.md", "file:///docs/b.md"])


def source(url: str, kind: str, number: int) -> Source:
    return Source(
        id=SourceId(number),
        name=f"s{number}",
        version=None,
        kind=kind,
        url=url,
        created_at=NOW,
        updated_at=NOW,
    )


def test_only_what_is_on_this_machine_is_watched() -> None:
    folder, web = source("file:///docs", "folder", 1), source("https://x.example/", "web", 2)
    git, links = source("file:///repo", "git", 3), source("file:///links.txt", "links", 4)
    assert watched_of({}, [folder, web, git, links]) == [folder, links]
    assert watched_of({"lib": [folder, web], "s1": [folder]}, []) == [folder]
    with pytest.raises(UsageError, match=r"s2 \(https://x.example/\) is no folder or file of this machine"):
        watched_of({"s2": [web]}, [folder])
    with pytest.raises(UsageError, match="`afresh crawl FOLDER` adds one"):
        watched_of({}, [web])
