"""A store in memory with a few pages, an external store that does what it is told, and syncs between them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from afresh.core.copies import Copy, Replace
from afresh.core.model import Held, Page, PageId, PageStatus, Source, Worker
from afresh.core.reconcile import Times
from afresh.core.remote import Mark, Remote, RemoteState
from afresh.core.sync_views import SyncReport
from afresh.core.text import content_hash
from afresh.engine.lifetime import Vigil
from afresh.engine.sync import Syncs
from afresh.engine.sync_work import Outlet
from afresh.testing import FrozenClock, MemoryStore, ScriptedSink
from afresh.testing.memory.tables import PageRow

ROOT = "https://docs.example.org/"


async def no_sleep(seconds: float) -> None:
    """Time passes at once."""


@dataclass(slots=True)
class Office:
    """Pages on one side, documents on the other."""

    order: Replace = Replace.DELETE_FIRST
    sink: ScriptedSink = field(default_factory=ScriptedSink)
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: FrozenClock = field(default_factory=FrozenClock)
    times: Times = field(default_factory=Times)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    wait_seconds: float = 0.0
    _born: int = 0

    async def source(self, name: str = "docs") -> Source:
        return await self.store.add_source(
            name=name, version=None, kind="web", url=ROOT, rules={}, policy={}, now=self.clock()
        )

    async def write(
        self,
        path: str,
        text: str | None,
        *,
        moved: bool = False,
        name: str = "docs",
        title: str | None = "its path",
    ) -> PageId:
        """Give a page this content, or none."""
        source, tables = await self.source(name), self.store.tables
        row = tables.page_at(source.id, ROOT + path)
        if row is None:
            page = PageId(next(tables.numbers))
            row = PageRow(page=Page(id=page, source_id=source.id, url=ROOT + path))
            tables.addresses[source.id, ROOT + path] = page
        page = row.page.id
        gone = PageStatus.REDIRECT if moved else PageStatus.DELETED
        tables.pages[page] = replace(
            row,
            page=replace(
                row.page,
                status=gone if text is None else PageStatus.ACTIVE,
                title=path if title == "its path" else title,
                content_hash=None if text is None else content_hash(text),
            ),
        )
        tables.documents.pop(page, None)
        if text is not None:
            tables.documents[page] = Held(markdown=text)
        return page

    def outlet(self) -> Outlet:
        return Outlet(
            name="remote",
            kind="scripted",
            place="memory",
            sink=self.sink,
            order=self.order,
            wait_seconds=self.wait_seconds,
            times=self.times,
            secrets=("s3cr3t-key",),
        )

    def syncs(self) -> Syncs:
        """The tools of one more process."""
        self._born += 1
        me = Worker(name=f"w{self._born}", host="here", pid=1, heartbeat_at=self.clock())
        vigil = Vigil(store=self.store, me=me, lease_seconds=60, heartbeat_seconds=10, clock=self.clock)
        return Syncs(
            store=self.store,
            vigil=vigil,
            stopping=self.stopping,
            listener=lambda event: None,
            new_id="me",
            sleep=no_sleep,
        )

    async def sync(self, *, verify: bool = False) -> SyncReport:
        [report] = await self.syncs().sync([self.outlet()], verify=verify)
        return report

    def wanted(self) -> dict[str, str]:
        """Text by address of every page with content."""
        tables = self.store.tables
        return {
            row.page.url: tables.documents[page].markdown or ""
            for page, row in tables.pages.items()
            if row.page.content_hash is not None
        }

    def ours(self) -> list[Remote]:
        return [each for each in self.sink.documents.values() if each.mark and each.mark.store == "me"]

    def found(self) -> Mapping[str, str]:
        """Text by address of what can be searched; two documents of one page are an error."""
        tables = self.store.tables
        texts: dict[str, str] = {}
        for remote in self.ours():
            assert remote.mark is not None
            url = tables.pages[PageId(remote.mark.page)].page.url
            assert url not in texts, f"{url} is there twice"
            assert remote.state is RemoteState.ACTIVE
            texts[url] = self.sink.texts[remote.id]
        return texts

    def copy(self, path: str) -> Copy:
        [copy] = [copy for copy in self.store.tables.copies.values() if copy.url == ROOT + path]
        return copy


def mark(page: int, store: str = "me", text: str = "old") -> Mark:
    return Mark(store=store, source="docs", page=page, hash=content_hash(text))
