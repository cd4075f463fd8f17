"""Sources in the store."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from afresh.errors import AlreadyKept
from afresh.model.records import (
    Run,
    Source,
    SourceId,
)
from afresh.store.records import (
    source_from,
)
from afresh.store.repository import Repository

UNKEPT_RUNS_STAY = timedelta(days=30)


class SourceRepository(Repository):
    """Read and write sources."""

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
        """The source of that name, made if it was not there; new rules and policy are merged over the old.

        Who made it stays on record; where that is unknown, it is the operator as soon as `by_operator`.
        """
        async with self.db.write() as tx:
            key = {"name": name, "version": version or ""}
            made = {"kind": kind, "url": url, "rules": "{}", "policy": "{}"}
            named = url if by_operator else ""
            await tx.run("insert_source", **key, **made, operator_url=named, trial=int(trial), now=now)
            row = await tx.one("source_by_label", **key)
            assert row is not None  # noqa: S101 - inserted above
            source = source_from(row)
            merged = {**source.rules, **rules}, {**source.policy, **policy}
            if by_operator:
                await tx.run("adopt_source", source=source.id)
            await tx.run(
                "update_source",
                source=source.id,
                rules=json.dumps(merged[0]),
                policy=json.dumps(merged[1]),
                now=now,
            )
            row = await tx.one("source_by_id", source=source.id)
            assert row is not None  # noqa: S101
            return source_from(row)

    async def find(self, name: str, version: str | None) -> Source | None:
        """The source with exactly this name and version."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_label", name=name, version=version or "")
            return source_from(row) if row else None

    async def find_by_url(self, url: str, version: str | None) -> Source | None:
        """The source that has this root."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_url", url=url, version=version or "")
            return source_from(row) if row else None

    async def get(self, source: SourceId) -> Source | None:
        """The source with this id."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            return source_from(row) if row else None

    async def all(self, name: str | None = None) -> list[Source]:
        """All sources, or all versions of one name."""
        async with self.db.read() as tx:
            rows = await (tx.all("sources") if name is None else tx.all("sources_named", name=name))
            return [source_from(row) for row in rows]

    async def remove(self, source: SourceId, now: datetime) -> None:
        """Delete a source with its pages; the attempts stay in the history, the open ones as cancelled."""
        async with self.db.write(source) as tx:
            await tx.run("cancel_source", source=source, now=now)
            await tx.run("remember_page_numbers_of", source=source)
            await tx.run("delete_source", source=source)

    async def was_read(self, source: SourceId) -> bool:
        """Tell whether any page of a source was ever read."""
        async with self.db.read() as tx:
            return await tx.one("page_that_was_read", source=source) is not None

    async def end_trial(self, run: Run, now: datetime) -> bool:
        """Delete a source of which nothing was ever read, and keep its run; False if it is to stay."""
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
        """Give a source other rules and another policy; None if it is gone."""
        async with self.db.write(source) as tx:
            told = {"rules": json.dumps(dict(rules)), "policy": json.dumps(dict(policy))}
            row = await tx.one("replace_rules", source=source, now=now, **told)
            return source_from(row) if row else None

    async def change(
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

    async def root_places(self, source: SourceId, root: str) -> tuple[tuple[str, ...], str | None]:
        """Return the former roots of a source, and where its root was read if that was elsewhere."""
        async with self.db.read() as tx:
            rows = await tx.all("former_roots", source=source, root=root)
        former = tuple(row["url"] for row in rows if row["url"] != root)
        return former, next((row["validators_url"] for row in rows if row["url"] == root), None)

    async def has_mark(self, source: SourceId, mark: str | None) -> bool:
        """Whether the record is still what a mark names."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            return row is not None and row["mark"] == mark

    async def forget_mark(self, source: SourceId) -> None:
        """From now on the record may differ from the state that the mark names."""
        async with self.db.write(source) as tx:
            await tx.run("set_mark", source=source, mark=None)
