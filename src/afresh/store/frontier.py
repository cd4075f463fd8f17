"""What a source's rules admit of the links on record."""

from collections.abc import Callable

from afresh.core.model import SourceId
from afresh.store.dialect import Database


class Frontiers:
    """Keeps links in step with the rules of their source, without fetching a page for it."""

    db: Database

    async def frontier_is_open(self, source: SourceId, rules: str) -> tuple[bool, bool]:
        """Whether links wait beyond a limit, and whether the rules changed since they were judged."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            if row is None:
                return False, False
            changed = row["rules_seen"] not in ("", rules)
            return bool(row["frontier_open"]), changed

    async def judge_links(self, source: SourceId, admits: Callable[[str], bool]) -> None:
        """Judge every link of a source by its present rules."""
        async with self.db.write() as tx:
            rows = await tx.all("links_of_source", source=source)
            changed = [
                {"link": row["id"], "admitted": int(admits(row["url"]))}
                for row in rows
                if bool(row["admitted"]) != admits(row["url"])
            ]
            await tx.many("readmit_link", changed)
            await tx.run("mark_graph", source=source, changed=1)

    async def close_frontier(self, source: SourceId, rules: str, max_depth: int) -> None:
        """Note under which rules links were judged, and whether some still wait beyond a limit."""
        async with self.db.write() as tx:
            row = await tx.one("source_by_id", source=source)
            if row is not None and (row["frontier_open"] or row["rules_seen"] != rules):
                waiting = await tx.all("frontier", source=source) if row["frontier_open"] else []
                still_open = any(link["depth"] <= max_depth for link in waiting)
                await tx.run("mark_frontier", source=source, open=int(still_open), rules_seen=rules)
