"""What a person changes by hand, in memory."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from afresh.config.overlay import own_settings
from afresh.core.link_score import Worth
from afresh.core.model import PageId, PageStatus, Source, SourceId
from afresh.core.records import LinkFilter
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

    async def set_link(self, link: int, score: float | None, comment: str | None) -> bool:
        """Set what a link is worth, until it is scored anew; False if it is gone."""
        key = next((key for key, number in self.tables.link_ids.items() if number == link), None)
        if key is None:
            return False
        worth = self.tables.worths.get(key, Worth())
        self.tables.worths[key] = replace(worth, score=score, comment=comment)
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
