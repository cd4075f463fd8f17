"""Sources in the store and their listings."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from afresh.crawl.listing_diff import KnownPage
from afresh.errors import AlreadyExists
from afresh.model.records import ListedUrl, PageId, Run, Source, SourceId
from afresh.model.reports import listing_reason
from afresh.store.content import add_counts
from afresh.store.dialect import Row, Transaction
from afresh.store.records import at, listed_from, run_from, source_from, validators_from
from afresh.store.repository import Repository
from afresh.urls.canonical import domain_of

UNKEPT_RUNS_STAY = timedelta(days=30)
_UNCHANGED = ("checked", "not_modified", "known_asked")  # counts of pages that a listing shows unchanged


class SourceRepository(Repository):
    async def add(
        self,
        *,
        name: str,
        version: str | None,
        kind: str,
        url: str,
        rules: Mapping[str, object],
        policy: Mapping[str, object],
        now: datetime,
        by_operator: bool = False,
        trial: bool = False,
    ) -> Source:
        """Add or update a source and return it; rules and policy are merged into the stored ones.

        `by_operator`: the operator of this store chose the root, not a remote caller. For an existing source, this is
        stored only if the store does not say who chose its root. `trial`: the source is removed if its first run reads
        nothing.
        """
        async with self.db.write() as tx:
            key = {"name": name, "version": version or ""}
            made = {"kind": kind, "url": url, "rules": "{}", "policy": "{}"}
            named = url if by_operator else ""
            await tx.run("insert_source", **key, **made, operator_url=named, trial=int(trial), now=now)
            source = source_from(await tx.only("source_by_label", **key))
            if by_operator:
                await tx.run("adopt_source", source=source.id)
            merged = {"rules": json.dumps({**source.rules, **rules}), "policy": json.dumps({**source.policy, **policy})}
            await tx.run("update_source", source=source.id, **merged, now=now)
            return source_from(await tx.only("source_by_id", source=source.id))

    async def find(self, name: str, version: str | None) -> Source | None:
        return await self._find(source_from, "source_by_label", name=name, version=version or "")

    async def find_by_url(self, url: str, version: str | None) -> Source | None:
        return await self._find(source_from, "source_by_url", url=url, version=version or "")

    async def get(self, source: SourceId) -> Source | None:
        return await self._find(source_from, "source_by_id", source=source)

    async def all(self, name: str | None = None) -> list[Source]:
        if name is None:
            return await self._list(source_from, "sources")
        return await self._list(source_from, "sources_named", name=name)

    async def remove(self, source: SourceId, now: datetime) -> None:
        """Delete a source with its pages; keep its attempts in the history, and mark open ones as cancelled."""
        async with self.db.write(source) as tx:
            await tx.run("cancel_source", source=source, now=now)
            await tx.run("remember_page_numbers_of", source=source)
            await tx.run("delete_source", source=source)

    async def was_read(self, source: SourceId) -> bool:
        return await self._one("page_that_was_read", source=source) is not None

    async def end_trial(self, run: Run, now: datetime) -> bool:
        """Delete a source whose trial run read no page, but keep the run; return False if the source is kept."""
        async with self.db.write(run.source_id) as tx:
            if not await tx.run("keep_run_of_trial", run=run.id):
                return False
            await tx.run("forget_unkept_runs", before=now - UNKEPT_RUNS_STAY)
            await tx.run("cancel_source", source=run.source_id, now=now)
            await tx.run("delete_source", source=run.source_id)
            return True

    async def replace_rules(
        self, source: SourceId, rules: Mapping[str, object], policy: Mapping[str, object], now: datetime
    ) -> Source | None:
        """Replace rules and policy of a source; return None if it is gone."""
        async with self.db.write(source) as tx:
            settings = {"rules": json.dumps(dict(rules)), "policy": json.dumps(dict(policy))}
            row = await tx.one("replace_rules", source=source, now=now, **settings)
            return source_from(row) if row else None

    async def change(
        self, source: SourceId, *, name: str, version: str | None, url: str, operator_url: str | None, now: datetime
    ) -> Source | None:
        """Change name, version or root of a source; return None if it is gone.

        `operator_url` is the last root that the operator set: "" if there is none, None if it is unknown; it differs
        from `url` if a remote caller set the root. Raise AlreadyExists if another source has the name. A new root
        ends unfinished runs, and the next run checks all pages.
        """
        async with self.db.write(source) as tx:
            before = await tx.one("source_by_id", source=source)
            if before is None:
                return None
            same = await tx.one("source_by_label", name=name, version=version or "")
            if same is not None and same["id"] != source:
                raise AlreadyExists(f"name: {source_from(same).label} is the name of another source, {same['url']}")
            if before["url"] != url:
                await tx.run("give_up_runs_of_old_url", source=source, now=now)
                await tx.run("free_rows_of_closed_runs", source=source, now=now)
                await tx.run("mark_graph", source=source, changed=1)
            place = {"name": name, "version": version or "", "url": url, "operator_url": operator_url}
            return source_from(await tx.only("change_source", source=source, now=now, **place))

    async def root_places(self, source: SourceId, root: str) -> tuple[tuple[str, ...], str | None]:
        """Return the former roots of a source, and the URL to which its root redirected temporarily, or None."""
        rows = await self._all("former_roots", source=source, root=root)
        former = tuple(row["url"] for row in rows if row["url"] != root)
        return former, next((row["validators_url"] for row in rows if row["url"] == root), None)

    async def has_mark(self, source: SourceId, mark: str | None) -> bool:
        row = await self._one("source_by_id", source=source)
        return row is not None and row["mark"] == mark

    async def forget_mark(self, source: SourceId) -> None:
        """Forget which state of the source was read last, so that the next run lists the source again."""
        async with self.db.write(source) as tx:
            await tx.run("set_mark", source=source, mark=None)


class ListingRepository(Repository):
    async def stored_pages(self, source: SourceId, recipe: str) -> list[KnownPage]:
        """Return the stored pages of a source that may still exist, to compare them with a listing."""
        return await self._list(_known_page, "stored_pages", source=source, recipe=recipe)

    async def with_problems(self, source: SourceId, recipe: str) -> list[ListedUrl]:
        """Return the pages to check even if the source is unchanged: failed, flagged or read with another recipe."""
        return await self._list(listed_from, "with_problems", source=source, recipe=recipe)

    async def stored_below(self, source: SourceId, urls: Sequence[str]) -> list[ListedUrl]:
        """Return the stored pages at or below these URLs that may still exist."""
        asked = [{"source": source, "url": url, "below": f"{url}/", "beyond": f"{url}0"} for url in urls]
        async with self.db.read() as tx:
            found = await tx.each("stored_below", asked)
        return list(dict.fromkeys(listed_from(row) for rows in found for row in rows))

    async def mark_unchanged(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> int:
        """Mark pages with content as checked and unchanged, except `others` and queued ones; return their number."""
        async with self.db.write(run.source_id) as tx:
            asked = {"source": run.source_id, "run": run.id, "started": run.started_at}
            number = await tx.run("believe_listing", **asked, now=now, others=list(others))
            await add_counts(tx, run, [dict.fromkeys(_UNCHANGED, number)], now)
            await _note_listing(tx, run, now, number, others)
            return number

    async def record_unchanged(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> None:
        """Record once per run that a source is unchanged: its pages, except `others`, count as checked."""
        async with self.db.write(run.source_id) as tx:
            row = await tx.one("run_by_id", run=run.id)
            if row is not None and "told" in run_from(row).counts:
                return
            await tx.run("tell_unchanged", source=run.source_id, now=now, started=run.started_at)
            queued = await tx.number("queued_with_content", run=run.id)
            number = max(0, run.known - len(others) - queued)
            await add_counts(tx, run, [dict.fromkeys((*_UNCHANGED, "told"), number)], now)
            await _note_listing(tx, run, now, number, others)

    async def record(self, source: SourceId, listed: Sequence[ListedUrl], *, complete: bool = True) -> None:
        """Mark these pages as listed; if the listing is complete, remove the mark of all other pages."""
        urls = [item.url for item in listed]
        async with self.db.write(source) as tx:
            changed = await tx.run("set_listed", source=source, urls=urls)
            if complete:
                changed += await tx.run("clear_listed", source=source, urls=urls)
            if changed:
                await tx.run("mark_graph", source=source, changed=1)

    async def lists_pages(self, source: SourceId) -> bool:
        """Return whether the last listing contained pages besides the root."""
        return bool(await self._number("listed_pages", source=source))


def _known_page(row: Row) -> KnownPage:
    page = row["id"], row["url"], row["depth"], validators_from(row)
    return KnownPage(*page, bool(row["sound"]), at(row["checked_at"]))


async def _note_listing(tx: Transaction, run: Run, now: datetime, number: int, others: Sequence[PageId]) -> None:
    """Record a listing as one attempt for all pages that it shows unchanged, except `others`."""
    if not number:
        return
    source = await tx.one("source_by_id", source=run.source_id)
    before = await tx.one("listing_attempt", run=run.id)
    excluded: str | None = None  # null: the listing covers every page
    if others:  # unlisted pages are excluded anyway
        rows = await tx.all("listed_among", source=run.source_id, others=list(others))
        excluded = "".join(f",{row['id']}" for row in rows) + ","
    number += before["unchanged"] if before else 0
    values = {"now": now, "number": number, "reason": listing_reason(number), "untold": excluded}
    if before is not None:
        await tx.run("extend_listing_attempt", crawl=before["id"], **values)
    elif source is not None:
        where = {"url": source["url"], "domain": domain_of(source["url"]) if "://" in source["url"] else ""}
        await tx.run("insert_listing_attempt", run=run.id, **where, **values)
