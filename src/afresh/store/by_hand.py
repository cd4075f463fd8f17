"""What a person changes by hand: settings of a source, one page, one link."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from afresh.core.errors import AlreadyKept
from afresh.core.model import PageId, PageStatus, Source, SourceId
from afresh.core.urls import domain_of
from afresh.store.dialect import Database
from afresh.store.links import LinkBook
from afresh.store.records import page_from, source_from
from afresh.store.sweep import drop

LAST = 1_000_000  # where a link stands on its page that was put there by hand


class ByHand:
    """Single records, changed from outside a run; each method is one transaction."""

    db: Database
    _links: LinkBook

    async def replace_rules(
        self, source: SourceId, rules: Mapping[str, object], policy: Mapping[str, object], now: datetime
    ) -> Source | None:
        """Give a source other rules and another policy; None if it is gone."""
        async with self.db.write(source) as tx:
            told = {"rules": json.dumps(dict(rules)), "policy": json.dumps(dict(policy))}
            row = await tx.one("replace_rules", source=source, now=now, **told)
            return source_from(row) if row else None

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
        """Give a source another name, version or root; None if it is gone, AlreadyKept if the name is taken.

        With another root, runs that are not over are given up, and the next one looks at everything.
        """
        async with self.db.write(source) as tx:
            before = await tx.one("source_by_id", source=source)
            if before is None:
                return None
            same = await tx.one("source_by_label", name=name, version=version or "")
            if same is not None and same["id"] != source:
                raise AlreadyKept(f"name: {source_from(same).label} is another source, at {same['url']}")
            if before["url"] != url:
                await tx.run("give_up_runs_of_old_url", source=source, now=now)
                await tx.run("free_rows_of_closed_runs", source=source, now=now)
                await tx.run("mark_graph", source=source, changed=1)
            place = {"name": name, "version": version or "", "url": url, "operator_url": operator_url}
            row = await tx.one("change_source", source=source, now=now, **place)
            return source_from(row) if row else None

    async def add_page(self, source: SourceId, url: str, depth: int, now: datetime) -> PageId:
        """Make an address known, to be looked at as soon as what is due is."""
        async with self.db.write(source) as tx:
            row = {"source": source, "url": url, "now": now}
            await tx.many("insert_page", [{**row, "depth": depth, "run": None}])
            await tx.many("await_look", [{**row, "domain": domain_of(url), "at": now}])
            found = await tx.all("pages_by_url", url=url, source=source)
            return PageId(found[0]["id"])

    async def look_at(self, page: PageId, at: datetime, now: datetime) -> bool:
        """Set when a page is looked at next; False if it is being looked at or in a run."""
        async with self.db.write() as tx:
            row = await tx.one("open_row", page=page)
            if row is not None and (row["run_id"] is not None or row["locked_by"] is not None):
                return False
            if row is not None:
                await tx.run("postpone", crawl=row["id"], at=at, now=now)
                return True
            found = await tx.one("page_record", page=page)
            if found is None:
                return False
            place = {"source": found["source_id"], "url": found["url"], "domain": domain_of(found["url"])}
            await tx.many("await_look", [{**place, "at": at, "now": now}])
            return True

    async def drop_page(self, page: PageId, now: datetime) -> bool:
        """Take a page out of the index; False if it is not in it. Its history stays."""
        async with self.db.read() as tx:
            seen = await tx.one("page_record", page=page)
        if seen is None:
            return False
        async with self.db.write(SourceId(seen["source_id"])) as tx:
            row = await tx.one("page_record", page=page)
            if row is None or row["status"] == PageStatus.DELETED:
                return False
            await drop(tx, SourceId(row["source_id"]), None, [replace(page_from(row), moved_to=None)], now)
            return True

    async def add_link(self, page: PageId, url: str, text: str) -> int | None:
        """Put a link on a page, until its own links change; None if there is no such page."""
        async with self.db.read() as tx:
            seen = await tx.one("page_record", page=page)
        if seen is None:
            return None
        source = SourceId(seen["source_id"])
        async with self.db.write(source) as tx:
            link = {"source": source, "url": url, "admitted": 0, "crawl_time": seen["crawl_time"]}
            await tx.many("upsert_link", [link])
            [row] = await tx.all("link_ids", source=source, urls=[url])
            edge = {"page": page, "link": row["id"], "position": LAST, "text": text, "follow": 1}
            await tx.many("insert_page_link", [edge])
            await tx.run("mark_graph", source=source, changed=1)
            return int(row["id"])

    async def set_link(
        self,
        link: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> bool:
        """Set what a link is worth, until it is scored again; False if it is gone."""
        async with self.db.write() as tx:
            if await tx.one("link_row", link=link) is None:
                return False
            await tx.many("set_worth", [{"link": link, "score": score, "comment": comment}])
            if keywords is not None:
                await tx.run("drop_keywords", links=[link])
                words = [{"link": link, "keyword": word, "score": each} for word, each in keywords.items()]
                await tx.many("insert_keyword", words)
            return True

    async def remove_link(self, link: int) -> bool:
        """Take a link off every page, until the links of one change; False if it stands on none."""
        async with self.db.write() as tx:
            row = await tx.one("link_row", link=link)
            if row is None or not await tx.run("remove_link", link=link):
                return False
            await tx.run("mark_graph", source=row["source_id"], changed=1)
            await tx.run("unseal_links", source=row["source_id"])
            return True
