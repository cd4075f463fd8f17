"""What a source lists by itself, as it was last on record."""

import json
from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.counters import total
from afresh.crawl.listing_diff import OnRecord
from afresh.model.history import listing_reason
from afresh.model.records import Attempt, Listed, PageId, Run, SourceId
from afresh.store.dialect import Session
from afresh.store.records import at, attempt_from, run_from, validators_from
from afresh.store.repository import Repository
from afresh.urls.canonical import domain_of

EVERY_LISTING = 1_000_000_000


class ListingRepository(Repository):
    """Read and write listings."""

    async def on_record(self, source: SourceId, recipe: str) -> list[OnRecord]:
        """The pages of a source that may be there still, as they were last read."""
        async with self.db.read() as tx:
            rows = await tx.all("on_record", source=source, recipe=recipe)
            return [
                OnRecord(
                    row["id"],
                    row["url"],
                    row["depth"],
                    validators_from(row),
                    bool(row["sound"]),
                    at(row["checked_at"]),
                )
                for row in rows
            ]

    async def unsound(self, source: SourceId, recipe: str) -> list[Listed]:
        """The pages that are to be looked at although the source is as it was."""
        async with self.db.read() as tx:
            rows = await tx.all("unsound", source=source, recipe=recipe)
            return [Listed(row["url"], row["depth"]) for row in rows]

    async def on_record_at(self, source: SourceId, urls: Sequence[str]) -> list[Listed]:
        """The pages that may be there still at some addresses, or below them as files in folders."""
        async with self.db.read() as tx:
            rows = [
                row
                for url in urls
                for row in await tx.all(
                    "on_record_at", source=source, url=url, below=f"{url}/", beyond=f"{url}0"
                )
            ]
            return [Listed(*each) for each in dict.fromkeys((row["url"], row["depth"]) for row in rows)]

    async def believe(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> int:
        """Stamp all pages that the run has not queued as checked and unchanged; how many that were."""
        async with self.db.write(run.source_id) as tx:
            number = await tx.run(
                "believe_listing",
                source=run.source_id,
                run=run.id,
                started=run.started_at,
                now=now,
                others=list(others),
            )
            row = await tx.one("run_by_id", run=run.id)
            before = run_from(row).counts if row else {}
            found = {"checked": number, "not_modified": number, "known_asked": number}
            await tx.run("count_run", run=run.id, now=now, counts=json.dumps(total([before, found])))
            await _note_listing(tx, run, now, number, others)
            return number

    async def record_unchanged(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> None:
        """Note that a source is as it was; its pages but `others` are counted as checked, once in a run."""
        async with self.db.write(run.source_id) as tx:
            row = await tx.one("run_by_id", run=run.id)
            before = run_from(row).counts if row else {}
            if "told" in before:
                return
            await tx.run("tell_unchanged", source=run.source_id, now=now, started=run.started_at)
            queued = await tx.one("queued_with_content", run=run.id)
            number = max(0, run.known - len(others) - (queued["number"] if queued else 0))
            found = {"checked": number, "not_modified": number, "known_asked": number, "told": number}
            await tx.run("count_run", run=run.id, now=now, counts=json.dumps(total([before, found])))
            await _note_listing(tx, run, now, number, others)

    async def record(self, source: SourceId, listed: Sequence[Listed], *, complete: bool = True) -> None:
        """Remember which pages the source lists by itself; an incomplete listing takes none off the list."""
        urls = [item.url for item in listed]
        async with self.db.write(source) as tx:
            changed = await tx.run("set_listed", source=source, urls=urls)
            if complete:
                changed += await tx.run("clear_listed", source=source, urls=urls)
            if changed:
                await tx.run("mark_graph", source=source, changed=1)

    async def lists_pages(self, source: SourceId) -> bool:
        """Whether a listing named pages beside the root when it was last read."""
        async with self.db.read() as tx:
            row = await tx.one("listed_pages", source=source)
            return bool(row and row["number"])


async def listings_of_page(tx: Session, page: PageId, limit: int = EVERY_LISTING) -> list[Attempt]:
    """Attempts of listings that show a page unchanged in runs that did not ask for it, newest first."""
    rows = await tx.all("listings_of_page", page=page, top=None, until=None, limit=limit)
    return [attempt_from(row) for row in rows]


async def _note_listing(tx: Session, run: Run, now: datetime, number: int, others: Sequence[PageId]) -> None:
    """Write the one attempt that stands for the pages a listing shows unchanged, `others` left out."""
    if not number:
        return
    source = await tx.one("source_by_id", source=run.source_id)
    before = await tx.one("listing_attempt", run=run.id)
    untold: str | None = None  # null: the listing tells of every page
    if others:  # only those that are listed too have to be named: the rest is known by not being listed
        rows = await tx.all("listed_among", source=run.source_id, others=list(others))
        untold = "".join(f",{row['id']}" for row in rows) + ","
    number += before["unchanged"] if before else 0
    said = {"now": now, "number": number, "reason": listing_reason(number), "untold": untold}
    if before is not None:
        await tx.run("extend_listing_attempt", crawl=before["id"], **said)
    elif source is not None:
        url = source["url"]
        domain = domain_of(url) if "://" in url else ""
        await tx.run("insert_listing_attempt", run=run.id, url=url, domain=domain, **said)
