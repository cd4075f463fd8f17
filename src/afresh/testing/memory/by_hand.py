"""What a person changes by hand, in memory."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from afresh.config.overlay import own_settings
from afresh.core.errors import AlreadyKept
from afresh.core.link_score import Worth
from afresh.core.model import PageId, PageStatus, RunMode, RunState, Source, SourceId
from afresh.core.records import LinkFilter
from afresh.core.states import UNFINISHED
from afresh.testing.memory.by_number import MemoryByNumber
from afresh.testing.memory.sweep import MemorySweeps
from afresh.testing.memory.tables import Edge, PageRow


class MemoryByHand(MemorySweeps, MemoryByNumber):
    """Single records, changed from outside a run."""

    async def replace_rules(
        self, source: SourceId, rules: Mapping[str, object], policy: Mapping[str, object], now: datetime
    ) -> Source | None:
        """Give a source other rules and another policy; None if it is gone."""
        row = self.tables.sources.get(source)
        if row is None:
            return None
        rules, policy = own_settings(rules), own_settings(policy)
        changed = replace(row.source, rules=rules, policy=policy, updated_at=now)
        self.tables.sources[source] = replace(row, source=changed)
        return changed

    async def change_source(
        self,
        source: SourceId,
        *,
        name: str,
        version: str | None,
        url: str,
        operator_url: str | None,
        now: datetime,
    ) -> Source | None:
        """Give a source another name, version or root; None if it is gone, AlreadyKept if it cannot be."""
        row = self.tables.sources.get(source)
        if row is None:
            return None
        for other in self.tables.sources.values():
            if other.source.id != source and (other.source.name, other.source.version) == (name, version):
                raise AlreadyKept(f"name: {other.source.label} is another source, at {other.source.url}")
        moves = row.source.url != url
        if moves:
            self._give_up_open_runs(source, now)
        changed = replace(
            row.source,
            name=name,
            version=version,
            url=url,
            operator_url=operator_url,
            mark=None if moves else row.source.mark,
            updated_at=now,
        )
        self.tables.sources[source] = replace(row, source=changed)
        return changed

    def _give_up_open_runs(self, source: SourceId, now: datetime) -> None:
        error = "given up: the URL of the source was changed"
        for run in list(self.tables.runs.values()):
            if run.source_id == source and run.mode is not RunMode.SYNC and run.state in UNFINISHED:
                over = replace(run, state=RunState.FAILED, finished_at=now, error=error)
                self.tables.runs[run.id] = over
                for waiting in self.tables.waiting():
                    if waiting.run_id == run.id and waiting.locked_at is None:
                        self.tables.change_attempt(waiting.id, now, run_id=None)

    async def add_page(self, source: SourceId, url: str, depth: int, now: datetime) -> PageId:
        """Make an address known, to be looked at as soon as what is due is."""
        row = self.tables.page_at(source, url)
        if row is None:
            page = self.tables.new_page(source, url, depth, now)
            row = self.tables.pages[page.id] = PageRow(page=page)
            self.tables.addresses[source, url] = page.id
        if row.page.id not in self.tables.open:
            self.tables.open_attempt(row.page, None, now, now)
        return row.page.id

    async def look_at(self, page: PageId, at: datetime, now: datetime) -> bool:
        """Set when a page is looked at next; False if it is being looked at or in a run."""
        waiting = self.tables.open.get(page)
        if waiting is not None:
            row = self.tables.crawls[waiting]
            if row.run_id is not None or row.locked_by is not None:
                return False
            self.tables.change_attempt(waiting, now, scheduled_for=at)
            return True
        if page not in self.tables.pages:
            return False
        self.tables.open_attempt(self.tables.pages[page].page, None, at, now)
        return True

    async def drop_page(self, page: PageId, now: datetime) -> bool:
        """Take a page out of the index; False if it is not in it. Its history stays."""
        row = self.tables.pages.get(page)
        if row is None or row.page.status is PageStatus.DELETED:
            return False
        self.drop(row.page.source_id, None, replace(row.page, moved_to=None), now)
        return True

    async def add_link(self, page: PageId, url: str, text: str) -> int | None:
        """Put a link on a page, until its own links change; None if there is no such page."""
        row = self.tables.pages.get(page)
        if row is None:
            return None
        edges = self.tables.edges.get(page, ())
        if all(edge.url != url for edge in edges):
            self.tables.edges[page] = (*edges, Edge(url, text, True))
        self.tables.links.setdefault((row.page.source_id, url), False)
        found = await self.link_records([row.page.source_id], LinkFilter(url=url), limit=1)
        return found[0].id

    async def set_link(
        self,
        link: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> bool:
        """Set what a link is worth, until it is scored again; False if it is gone."""
        key = next((key for key, number in self.tables.link_ids.items() if number == link), None)
        if key is None:
            return False
        worth = self.tables.worths.get(key, Worth())
        words = worth.keywords if keywords is None else keywords
        ranked = dict(sorted(words.items(), key=lambda item: (-item[1], item[0])))
        self.tables.worths[key] = replace(worth, score=score, comment=comment, keywords=ranked)
        return True

    async def remove_link(self, link: int) -> bool:
        """Take a link off every page, until the links of one change; False if it stands on none."""
        found = await self.link_record(link)
        if found is None:
            return False
        for row in self.tables.pages_of(found.source_id):
            edges = self.tables.edges.get(row.page.id, ())
            self.tables.edges[row.page.id] = tuple(edge for edge in edges if edge.url != found.url)
        self.tables.unseal_links(found.source_id)
        return True
