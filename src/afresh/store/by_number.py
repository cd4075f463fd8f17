"""Records by their numbers: lists that go on where the last part ended, whatever was written meanwhile."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from afresh.core.history import newest_first
from afresh.core.looks import Outcome
from afresh.core.model import Attempt, ChangeKind, PageId, Run, RunId, RunState
from afresh.core.records import (
    ALL_LINKS,
    LIVE_PAGES,
    AttemptPlace,
    LinkedPage,
    LinkFilter,
    LinkPlace,
    LinkRecord,
    PageFilter,
    Sources,
    parts_of_run,
)
from afresh.core.views import ChangeView, PageView
from afresh.store.dialect import Database, Row, Session
from afresh.store.reads import LOOKED_AT, SHOWN_PAGES, asked_pages, change_from
from afresh.store.records import at, attempt_from, page_view, run_from
from afresh.store.sql import of_sources

LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC)  # behind a row that is still open come all that are over


class ByNumber:
    """Pages, links, runs, changes and attempts."""

    db: Database

    async def page_records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, after: int = 0, limit: int
    ) -> list[PageView]:
        """Pages with a number above `after`, in the order of their numbers."""
        name, among = of_sources("page_records", sources)
        async with self.db.read() as tx:
            rows = await tx.all(name, **among, **asked_pages(which), after=after, limit=limit)
            return [page_view(row) for row in rows]

    async def page_record(self, page: PageId) -> PageView | None:
        """One page."""
        async with self.db.read() as tx:
            row = await tx.one("page_record", page=page)
            return page_view(row) if row else None

    async def link_records(
        self,
        sources: Sources,
        which: LinkFilter = ALL_LINKS,
        *,
        after: LinkPlace | None = None,
        limit: int,
    ) -> list[LinkRecord]:
        """Links behind a place, those worth most first."""
        asked = {
            "keyword": which.keyword,
            "least": which.min_score,
            "after": after.id if after else None,
            "after_score": after.score if after else None,
            "after_url": after.url if after else None,
            "limit": limit,
        }
        async with self.db.read() as tx:
            if sources is not None and len(sources) == 1 and which.page is None and which.url is None:
                rows = await tx.all("best_links", source=sources[0], **asked)  # in the order of an index
            else:
                rows = await tx.all(
                    "link_records", **_among(sources), page=which.page, url=which.url, **asked
                )
            return await _joined(tx, rows)

    async def link_record(self, link: int) -> LinkRecord | None:
        """One link."""
        async with self.db.read() as tx:
            row = await tx.one("link_record", link=link)
            return (await _joined(tx, [row]))[0] if row else None

    async def run_records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None = None, limit: int
    ) -> list[Run]:
        """Runs with a number below, newest first."""
        async with self.db.read() as tx:
            rows = await tx.all("run_records", **_among(sources), state=state, top=below, limit=limit)
            return [run_from(row) for row in rows]

    async def change_records(
        self,
        sources: Sources,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int,
    ) -> list[ChangeView]:
        """Changes with a number below, newest first."""
        one = sources[0] if sources is not None and len(sources) == 1 else None
        asked = {"source": one, "run": run, "url": url, "kind": kind, "top": below, "limit": limit}
        name = _by_index(run=run, url=url, kind=kind, one=one is not None)
        async with self.db.read() as tx:
            return [change_from(row) for row in await tx.all(name, **_among(sources), **asked)]

    async def changes_of_run(
        self, run: RunId, kinds: Sequence[ChangeKind], *, limit: int
    ) -> list[ChangeView]:
        """The changes of some kinds that a run found, oldest first, without their differences."""
        async with self.db.read() as tx:
            rows = await tx.all("changes_of_run", run=run, kinds=list(kinds), limit=limit)
            return [change_from(row) for row in rows]

    async def attempt_records(self, page: PageId, *, below: int | None = None, limit: int) -> list[Attempt]:
        """Attempts of a page behind that with a number, newest first; listings that show it unchanged too."""
        async with self.db.read() as tx:
            place = await tx.one("attempt_place", top=below) if below is not None else None
            until = (at(place["completed_at"]) or LAST_MOMENT) if place else None
            asked = {"page": page, "top": below, "until": until, "limit": limit}
            own = map(attempt_from, await tx.all("attempt_records", **asked))
            listings = map(attempt_from, await tx.all("listings_of_page", **asked))
            return newest_first(own, listings)[:limit]

    async def attempts_of_run(
        self,
        run: RunId,
        *,
        outcome: Outcome | None = None,
        after: AttemptPlace | None = None,
        limit: int,
    ) -> list[Attempt]:
        """Attempts of a run that are over, those that went wrong first, and by number."""
        rows: list[Row] = []
        async with self.db.read() as tx:
            for part in parts_of_run(outcome, after):
                if (left := limit - len(rows)) > 0:
                    asked = {"outcome": part.outcome, "after": part.id, "limit": left}
                    rows += await tx.all("attempts_with_outcome", run=run, **asked)
            return [attempt_from(row) for row in rows]


def _by_index(*, run: int | None, url: str | None, kind: ChangeKind | None, one: bool) -> str:
    """The statement that finds changes in the order of an index; `one`: of one source."""
    if url is not None:
        return "changes_of_url"
    if run is not None:
        return "changes_in_run" if kind is None else "changes_of_kind_in_run"
    if kind is not None:
        return "changes_of_kind" if one else "every_change_of_kind"
    return "changes_of_source" if one else "change_records"


def _among(sources: Sources) -> dict[str, object]:
    return {"everywhere": int(sources is None), "sources": list(sources or ())}


async def _joined(tx: Session, rows: Sequence[Row]) -> list[LinkRecord]:
    """Links with their keywords and the pages they stand on."""
    ids = [row["id"] for row in rows]
    keywords: dict[int, dict[str, float]] = defaultdict(dict)
    for row in await tx.all("keywords_of_links", links=ids):
        keywords[row["link_id"]][row["keyword"]] = row["score"]
    which = [{"link": link, "limit": LOOKED_AT, "most": SHOWN_PAGES} for link in ids]
    places = await tx.each("places_of_link", which)
    counts = await tx.each("count_places", [{"link": link} for link in ids])
    return [
        _link(row, standing, number[0]["places"], keywords[row["id"]])
        for row, standing, number in zip(rows, places, counts, strict=True)
    ]


def _link(row: Row, places: Sequence[Row], count: int, keywords: dict[str, float]) -> LinkRecord:
    return LinkRecord(
        id=row["id"],
        source_id=row["source_id"],
        url=row["url"],
        score=row["score"],
        keywords=keywords,
        comment=row["comment"],
        crawl_time=at(places[0]["crawl_time"]) if places else None,
        page_count=count,
        pages=tuple(
            LinkedPage(id=PageId(each["page_id"]), url=each["url"], title=each["title"], text=each["text"])
            for each in places
        ),
    )
