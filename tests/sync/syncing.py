"""A store with a few pages, an external store that does what it is found_text, and syncs between them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.stores import execute

from afresh.config.server import SinkSettings
from afresh.crawl.heartbeat import Heartbeat
from afresh.model.records import PageId, PageStatus, Source, WorkerRecord
from afresh.store.copies import wanted_from
from afresh.store.store import Store
from afresh.sync.copy import Copy, OwnerTag, Remote, RemoteState, ReplaceOrder
from afresh.sync.reconcile import SyncTimes
from afresh.sync.reports import SyncReport
from afresh.sync.sync import SyncRunner
from afresh.sync.sync_pass import ConfiguredSink
from afresh.testing import FrozenClock, ScriptedSink
from afresh.text.normalize import content_hash

ROOT = "https://docs.example.org/"


async def no_sleep(seconds: float) -> None:
    """Time passes at once."""


@dataclass(slots=True)
class Office:
    """Pages on one side, documents on the other."""

    store: Store
    order: ReplaceOrder = ReplaceOrder.DELETE_FIRST
    sink: ScriptedSink = field(default_factory=ScriptedSink)
    clock: FrozenClock = field(default_factory=FrozenClock)
    times: SyncTimes = field(default_factory=SyncTimes)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    wait_seconds: float = 0.0
    _born: int = 0

    async def source(self, name: str = "docs") -> Source:
        return await self.store.sources.add(
            name=name, version=None, kind="web", url=ROOT, rules={}, policy={}, now=self.clock()
        )

    async def write(
        self, path: str, text: str | None, *, moved: bool = False, name: str = "docs", title: str | None = "its path"
    ) -> PageId:
        """Give a page this content, or none."""
        source, gone = await self.source(name), PageStatus.REDIRECT if moved else PageStatus.DELETED
        [row] = execute(
            self.store,
            "insert into pages (source_id, url, status, title, content_hash, created_at, updated_at) "
            "values (?, ?, ?, ?, ?, ?, ?) on conflict (source_id, url) do update "
            "set status = excluded.status, title = excluded.title, content_hash = excluded.content_hash "
            "returning id",
            source.id,
            ROOT + path,
            gone if text is None else PageStatus.ACTIVE,
            path if title == "its path" else title,
            None if text is None else content_hash(text),
            self.clock(),
            self.clock(),
        )
        execute(self.store, "insert or replace into documents (page_id, markdown) values (?, ?)", row["id"], text)
        return PageId(row["id"])

    def target(self) -> ConfiguredSink:
        return ConfiguredSink(
            name="remote",
            settings=SinkSettings(
                kind="scripted", replace=self.order, wait_seconds=self.wait_seconds, api_key="s3cr3t-key"
            ),
            sink=self.sink,
            times=self.times,
        )

    def syncs(self) -> SyncRunner:
        """The tools of one more process."""
        self._born += 1
        me = WorkerRecord(name=f"w{self._born}", host="here", pid=1, heartbeat_at=self.clock())
        heartbeat = Heartbeat(store=self.store, me=me, lease_seconds=60, heartbeat_seconds=10, clock=self.clock)
        return SyncRunner(
            store=self.store,
            heartbeat=heartbeat,
            stopping=self.stopping,
            listener=lambda event: None,
            new_id="me",
            sleep=no_sleep,
        )

    async def sync(self, *, verify: bool = False) -> SyncReport:
        [report] = await self.syncs().sync([self.target()], verify=verify)
        return report

    def wanted(self) -> dict[str, str]:
        """Text by address of every page with content."""
        sql = "select url, markdown from pages join documents on page_id = id where content_hash is not null"
        return {row["url"]: row["markdown"] for row in execute(self.store, sql)}

    def ours(self) -> list[Remote]:
        return [each for each in self.sink.documents.values() if each.mark and each.mark.store == "me"]

    def found(self) -> Mapping[str, str]:
        """Text by address of what can be searched; two documents of one page are an error."""
        urls = {row["id"]: row["url"] for row in execute(self.store, "select id, url from pages")}
        texts: dict[str, str] = {}
        for remote in self.ours():
            assert remote.mark is not None
            url = urls[remote.mark.page]
            assert url not in texts, f"{url} is there twice"
            assert remote.state is RemoteState.ACTIVE
            texts[url] = self.sink.texts[remote.id]
        return texts

    def copies(self) -> list[Copy]:
        sql = (
            "select c.*, p.status as page_status, p.content_hash as page_hash "
            "from copies c left join pages p on p.id = c.page_id"
        )
        return [wanted_from(dict(row)).copy for row in execute(self.store, sql)]

    def copy(self, path: str) -> Copy:
        [copy] = [copy for copy in self.copies() if copy.url == ROOT + path]
        return copy


def mark(page: int, store: str = "me", text: str = "old") -> OwnerTag:
    return OwnerTag(store=store, source="docs", page=page, hash=content_hash(text))
