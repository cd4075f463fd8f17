"""Remember which links of a source are on record, so that a commit writes only new ones."""

from collections.abc import Sequence

from afresh.model.records import Run, SourceId, Visit
from afresh.store.dialect import Session

REMEMBERED = 10_000  # targets whose row number is kept in memory


class LinkCache:
    """Writes links and remembers their row numbers, for most links of a site stand on every page."""

    def __init__(self) -> None:
        self._ids: dict[tuple[SourceId, str], int] = {}
        self._admitted: set[int] = set()

    def forget(self) -> None:
        """Drop what is remembered: a transaction was undone or links were deleted."""
        self._ids.clear()
        self._admitted.clear()

    async def write(self, tx: Session, run: Run, visits: Sequence[Visit]) -> None:
        """Replace the links of pages whose visit brought some."""
        linked = [visit for visit in visits if visit.harvest.links is not None]
        if not linked:
            return
        await self._make(tx, run, linked)
        removed = await tx.run("delete_page_links", pages=[visit.claim.page.id for visit in linked])
        edges = [
            {
                "page": visit.claim.page.id,
                "link": self._ids[run.source_id, link.url],
                "position": position,
                "text": link.text,
                "follow": int(link.follow),
            }
            for visit in linked
            for position, link in enumerate(visit.harvest.links or ())
        ]
        await tx.many("insert_page_link", edges)
        if removed or edges:
            await tx.run("mark_graph", source=run.source_id, changed=1)
            await tx.run("unseal_links", source=run.source_id)
        if len(self._ids) > REMEMBERED:
            self.forget()

    async def _make(self, tx: Session, run: Run, visits: Sequence[Visit]) -> None:
        """Make the rows of links that are new, or newly known to belong to the source."""
        wanted: dict[str, bool] = {}
        for visit in visits:
            for link in visit.harvest.links or ():
                wanted[link.url] = wanted.get(link.url, False) or link.url in visit.harvest.children
        unknown = {url: belongs for url, belongs in wanted.items() if not self._knows(run, url, belongs)}
        await tx.many(
            "upsert_link",
            [
                {"source": run.source_id, "url": url, "admitted": int(belongs), "crawl_time": run.started_at}
                for url, belongs in unknown.items()
            ],
        )
        for row in await tx.all("link_ids", source=run.source_id, urls=list(unknown)):
            self._ids[run.source_id, row["url"]] = row["id"]
            if unknown[row["url"]]:
                self._admitted.add(row["id"])

    def _knows(self, run: Run, url: str, belongs: bool) -> bool:
        link = self._ids.get((run.source_id, url))
        return link is not None and (not belongs or link in self._admitted)
