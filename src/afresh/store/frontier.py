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

    async def judge_links(self, source: SourceId, admits: Callable[[str, str | None], bool]) -> None:
        """Judge every link anew, by its address and, if it was left out, the nearest page it is on."""
        async with self.db.write(source) as tx:
            rows = await tx.all("links_of_source", source=source)
            changed = [
                {"link": row["id"], "admitted": int(belongs)}
                for row in rows
                if (belongs := admits(row["url"], row["found_on"])) != bool(row["admitted"])
            ]
            await tx.many("readmit_link", changed)
            await tx.run("mark_graph", source=source, changed=1)

    async def addresses(self, source: SourceId) -> list[tuple[str, bool]]:
        """Every address that is a page or waits to become one, and whether the source itself lists it."""
        async with self.db.read() as tx:
            return [(row["url"], bool(row["listed"])) for row in await tx.all("addresses", source=source)]

    async def left_out(self, source: SourceId) -> list[str]:
        """The links that could be followed but do not belong."""
        async with self.db.read() as tx:
            return [row["url"] for row in await tx.all("left_out", source=source)]

    async def close_frontier(self, source: SourceId, rules: str, max_depth: int) -> None:
        """Note under which rules links were judged, and whether some still wait beyond a limit."""
        async with self.db.write(source) as tx:
            row = await tx.one("source_by_id", source=source)
            if row is not None and (row["frontier_open"] or row["rules_seen"] != rules):
                waiting = await tx.all("frontier", source=source) if row["frontier_open"] else []
                still_open = any(link["depth"] <= max_depth for link in waiting)
                await tx.run("mark_frontier", source=source, open=int(still_open), rules_seen=rules)
