"""Watching a source: which checks follow which events, and that no change is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.stores import new_store

from afresh.crawl.tools import RunOptions
from afresh.errors import ConfigError, EmbedderUnavailable, RunBusy, StoreDamaged, UsageError
from afresh.events import Listener, Notice, ignore
from afresh.model.records import ListedUrl, RunId, RunMode, Source, SourceId
from afresh.model.reports import RunReport
from afresh.ports import ChangedPaths
from afresh.store.store import Store
from afresh.watch import watcher
from afresh.watch.watcher import Watcher, WatchReport, WatchTimes, select_watched

NOW = datetime(2026, 3, 4, tzinfo=UTC)
TIMEOUT_SECONDS = 30
TIMES = WatchTimes(debounce=0.01, rescan=3_600, again=3_600, tick=0.01)


@dataclass
class FakeFeed:
    """A change feed that a test controls."""

    place: str = "/docs"
    there: bool = True
    fault: OSError | None = None
    everything: bool = False
    opened: int = 0
    closed: int = 0
    on_change: Callable[[Sequence[str]], None] = field(default=lambda paths: None)
    on_loss: Callable[[str], None] = field(default=lambda why: None)

    def of(self, source: Source) -> "FakeFeed":
        if "bogus" in source.rules:
            raise ConfigError("unknown rule bogus")
        return self

    def open(self, on_change: Callable[[Sequence[str]], None], on_loss: Callable[[str], None]) -> None:
        if not self.there:
            raise FileNotFoundError(self.place)
        if self.fault:
            raise self.fault
        self.on_change, self.on_loss = on_change, on_loss
        self.opened += 1

    def close(self) -> None:
        self.closed += 1

    def is_intact(self) -> bool:
        return self.there

    def classify(self, paths: Iterable[str]) -> ChangedPaths:
        found = sorted(paths)
        files = [ListedUrl(f"file://{path}", 0) for path in found if "gone" not in path and "dust" not in path]
        other_urls = [f"file://{path}" for path in found if "gone" in path]
        return ChangedPaths(files, other_urls, self.everything)


class Scene:
    """One watched source; a test waits for its checks and notices."""

    def __init__(self, feed: FakeFeed, store: Store, source: Source, times: WatchTimes) -> None:
        self.feed, self.store, self.source = feed, store, source
        self.looks: asyncio.Queue[tuple[RunMode, list[str]]] = asyncio.Queue()
        self.notices: asyncio.Queue[str] = asyncio.Queue()
        self.errors: list[Exception] = []
        self.found = 0
        self.stopping = asyncio.Event()
        self.gate = asyncio.Event()  # looks last until it is open
        self.gate.set()
        watch = Watcher(store, feed.of, self.run, self.stopping, times, self._on_report, ignore)
        self.task = asyncio.create_task(watch.keep([source]))

    async def run(self, source: Source, options: RunOptions, listener: Listener) -> RunReport:
        self.looks.put_nowait((options.mode, [page.url for page in options.pages]))
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        plain = RunReport(run=RunId(1), source="docs", version=None, mode=options.mode, state="completed")
        return replace(plain, new=self.found)

    def _on_report(self, report: WatchReport) -> None:
        if isinstance(report, Notice):
            self.notices.put_nowait(report.text)

    async def look(self) -> tuple[RunMode, list[str]]:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self.looks.get()

    async def notice(self) -> str:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self.notices.get()

    async def end(self) -> None:
        self.stopping.set()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.task


@asynccontextmanager
async def scene(
    feed: FakeFeed | None = None,
    times: WatchTimes = TIMES,
    *,
    kind: str = "folder",
    rules: Mapping[str, object] | None = None,
) -> AsyncIterator[Scene]:
    with TemporaryDirectory() as folder:
        async with new_store(Path(folder), Store) as store:
            source = await store.sources.add(
                name="docs", version=None, kind=kind, url="file:///docs", rules=rules or {}, policy={}, now=NOW
            )
            made = Scene(feed or FakeFeed(), store, source, times)
            try:
                yield made
                await made.end()
                assert made.feed.opened == made.feed.closed
            finally:
                made.task.cancel()


@pytest.fixture(autouse=True)
def short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "RETRY_SECONDS", (0.01, 0.02))


ALL = (RunMode.REFRESH, list[str]())


async def test_a_full_check_comes_first_and_then_only_changed_paths() -> None:
    async with scene() as at:
        assert await at.look() == ALL
        assert at.feed.opened == 1, "it listens before it lists"
        assert await at.notice() == "Watching docs"
        at.feed.on_change(["/docs/b.md", "/docs/a.md"])
        assert await at.look() == (RunMode.CHECK, ["file:///docs/a.md", "file:///docs/b.md"])


async def test_a_source_with_invalid_settings_is_watched_once_they_are_valid() -> None:
    async with scene(rules={"bogus": 1}) as at:
        assert await at.notice() == "docs: unknown rule bogus; the source is watched as soon as its settings are valid"
        await at.store.sources.replace_rules(at.source.id, {}, {}, NOW)
        assert await at.look() == ALL
        assert await at.notice() == "Watching docs again"


async def test_irrelevant_paths_start_no_check() -> None:
    async with scene() as at:
        await at.look()
        at.feed.on_change(["/docs/dust", "/docs/gone-and-never-known"])
        at.feed.on_change(["/docs/a.md"])
        seen = await at.look()
        while "file:///docs/a.md" not in seen[1]:
            seen = await at.look()
        assert seen == (RunMode.CHECK, ["file:///docs/a.md"])
        assert at.looks.empty()


async def test_a_link_list_is_checked_for_due_links() -> None:
    async with scene(FakeFeed(everything=True), kind="links") as at:
        assert await at.look() == (RunMode.DUE, [])
        at.feed.on_change(["/docs"])
        assert await at.look() == (RunMode.DUE, [])


async def test_F85_a_burst_is_one_listing() -> None:
    async with scene() as at:
        await at.look()
        at.feed.on_change([f"/docs/{number}.md" for number in range(10_000)])
        assert await at.look() == ALL
        assert at.looks.empty()


async def test_F85_what_the_system_lost_is_found_by_listing_again_after_changes() -> None:
    """Of an overflow nothing is heard: any change is followed by a listing, once, until the next one."""
    async with scene(times=WatchTimes(debounce=0.01, rescan=3_600, again=0.05, tick=0.01)) as at:
        await at.look()
        at.feed.on_change(["/docs/the-only-one-heard.md"])
        assert (await at.look())[0] is RunMode.CHECK
        at.found = 1
        assert await at.look() == ALL
        at.found = 0
        assert await at.look() == ALL, "what was not heard may be more"
        at.feed.on_change(["/docs/a.md"])
        assert (await at.look())[0] is RunMode.CHECK, "a listing that found nothing is the last"


async def test_a_rescan_comes_without_any_event() -> None:
    async with scene(times=WatchTimes(debounce=0.01, rescan=0.05, again=60, tick=0.01)) as at:
        assert [await at.look() for _ in range(3)] == [ALL] * 3


async def test_F85_after_a_lost_feed_it_is_opened_again_and_everything_is_listed() -> None:
    async with scene() as at:
        await at.look()
        at.feed.on_loss("the limit of watches is reached")
        assert await at.look() == ALL
        assert (at.feed.opened, at.feed.closed) == (2, 1)


async def test_without_file_events_it_is_listed_periodically() -> None:
    feed = FakeFeed(fault=OSError("OS file watch limit reached"))
    async with scene(feed, WatchTimes(debounce=0.01, again=0.02, tick=0.01)) as at:
        assert "no file events (OS file watch limit reached)" in await at.notice()
        assert [await at.look() for _ in range(3)] == [ALL] * 3
        assert await at.notice() == "Watching docs"
        feed.fault = None
        assert await at.notice() == "Watching docs again"
        assert at.notices.empty(), "notices once"


async def test_F80_a_root_that_vanishes_is_reported_once_and_watched_again_when_it_is_back() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        at.feed.there = False
        at.feed.on_change(["/docs", "/docs/a.md"])
        assert "/docs does not exist; its pages are kept" in await at.notice()
        at.feed.there = True
        assert await at.notice() == "Watching docs again"
        assert await at.look() == ALL
        assert at.notices.empty()
        assert at.looks.empty()


async def test_while_another_run_is_active_it_is_retried_and_nothing_is_lost() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        at.errors = [RunBusy("run 3 of docs is already in progress"), RunBusy("still")]
        at.feed.on_change(["/docs/a.md"])
        assert (await at.look())[0] is RunMode.CHECK
        assert [await at.look() for _ in range(2)] == [ALL, ALL]
        assert at.notices.empty(), "that is nothing to worry about"


async def test_a_temporary_error_is_reported_once_and_retried() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        at.errors = [EmbedderUnavailable("no key"), EmbedderUnavailable("no key")]
        at.feed.on_change(["/docs/a.md"])
        assert [(await at.look())[0] for _ in range(3)] == [RunMode.CHECK, *[RunMode.REFRESH] * 2]
        assert await at.notice() == "docs: no key; retrying"
        assert at.notices.empty()


async def test_a_damaged_store_ends_the_watch() -> None:
    async with scene() as at:
        await at.look()
        at.errors = [StoreDamaged("the store is broken")]
        at.feed.on_change(["/docs/a.md"])
        await asyncio.wait({at.task})
        with pytest.raises(StoreDamaged):
            await at.task
        at.task = asyncio.create_task(asyncio.sleep(0))


async def test_a_source_that_is_removed_is_no_longer_watched() -> None:
    async with scene() as at:
        await at.look()
        await at.notice()
        await at.store.sources.remove(at.source.id, NOW)
        at.feed.on_change(["/docs/a.md"])
        assert await at.notice() == "docs: the source was removed and is no longer watched"
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await at.task


async def test_a_source_that_is_removed_while_its_settings_are_wrong_is_no_longer_watched() -> None:
    async with scene(rules={"bogus": 1}) as at:
        await at.notice()
        await at.store.sources.remove(at.source.id, NOW)
        assert await at.notice() == "docs: the source was removed and is no longer watched"
        await at.task


async def test_a_change_during_a_check_is_checked_next() -> None:
    async with scene() as at:
        await at.look()
        at.gate.clear()
        at.feed.on_change(["/docs/a.md"])
        assert await at.look() == (RunMode.CHECK, ["file:///docs/a.md"])
        at.feed.on_change(["/docs/a.md", "/docs/b.md"])
        at.gate.set()
        assert await at.look() == (RunMode.CHECK, ["file:///docs/a.md", "file:///docs/b.md"])


def source(url: str, kind: str, number: int) -> Source:
    return Source(
        id=SourceId(number), name=f"s{number}", version=None, kind=kind, url=url, created_at=NOW, updated_at=NOW
    )


def test_only_what_is_on_this_machine_is_watched() -> None:
    folder, web = source("file:///docs", "folder", 1), source("https://x.example/", "web", 2)
    git, links = source("file:///repo", "git", 3), source("file:///links.txt", "links", 4)
    assert select_watched({}, [folder, web, git, links]) == [folder, links]
    assert select_watched({"lib": [folder, web], "s1": [folder]}, []) == [folder]
    with pytest.raises(UsageError, match=r"s2 \(https://x.example/\) is not a folder or file on this machine"):
        select_watched({"s2": [web]}, [folder])
    with pytest.raises(UsageError, match="add one with `afresh crawl FOLDER`"):
        select_watched({}, [web])
