"""Links in the store, and the frontier of a source: links that may become pages."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from afresh.aio import in_turns
from afresh.model.filters import (
    ALL_LINKS,
    LinkedPage,
    LinkFilter,
    LinkPlace,
    LinkRecord,
    Sources,
)
from afresh.model.records import (
    PageId,
    Source,
    SourceId,
)
from afresh.model.reports import LinkView
from afresh.store.dialect import Row, Session
from afresh.store.pages import MANY
from afresh.store.records import (
    at,
    source_from,
)
from afresh.store.repository import Repository
from afresh.store.sql import among_sources

LAST = 1_000_000  # where a link stands on its page that was put there by hand
SHOWN_PAGES = 20  # of the pages a link stands on
LOOKED_AT = 200  # of those pages, the first that were found: among them are the nearest


class LinkRepository(Repository):
    """Read, judge and change links."""

    async def leading_to(
        self, url: str, source: SourceId | None = None
    ) -> tuple[Source, str, int, bool, bool] | None:
        """The nearest page that links there: source, page, depth, may it be followed, does it belong."""
        async with self.db.read() as tx:
            row = await tx.one("links_to", url=url, source=source)
            if row is None:
                return None
            return (
                source_from(row),
                row["page"],
                row["page_depth"],
                bool(row["follow"]),
                bool(row["admitted"]),
            )

    async def of_source(
        self,
        source: SourceId,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        """The links of a source or of one page, best first, with the pages they stand on."""
        which = {"source": source, "on_page": page, "keyword": keyword, "least": min_score}
        async with self.db.read() as tx:
            rows = await tx.all("links", **which, limit=limit or MANY)
            ids = [row["id"] for row in rows]
            found = {
                "texts": await tx.all("texts_of_links", links=ids),
                "pages": await tx.all("pages_of_links", links=ids, most=SHOWN_PAGES),
                "keywords": await tx.all("keywords_of_links", links=ids),
            }
        parts = {name: _by_link(part) for name, part in found.items()}
        return [_link(row, **{name: part[row["id"]] for name, part in parts.items()}) for row in rows]

    async def records(
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
                    "link_records", **among_sources(sources), page=which.page, url=which.url, **asked
                )
            return await _joined(tx, rows)

    async def get(self, link: int) -> LinkRecord | None:
        """One link."""
        async with self.db.read() as tx:
            row = await tx.one("link_record", link=link)
            return (await _joined(tx, [row]))[0] if row else None

    async def add(self, page: PageId, url: str, text: str) -> int | None:
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

    async def set_worth(
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

    async def remove(self, link: int) -> bool:
        """Take a link off every page, until the links of one change; False if it stands on none."""
        async with self.db.write() as tx:
            row = await tx.one("link_row", link=link)
            if row is None or not await tx.run("remove_link", link=link):
                return False
            await tx.run("mark_graph", source=row["source_id"], changed=1)
            await tx.run("unseal_links", source=row["source_id"])
            return True

    async def frontier_is_open(self, source: SourceId, rules: str) -> tuple[bool, bool]:
        """Whether links wait beyond a limit, and whether the rules changed since they were judged."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            if row is None:
                return False, False
            changed = row["rules_seen"] not in ("", rules)
            return bool(row["frontier_open"]), changed

    async def judge(self, source: SourceId, admits: Callable[[str, str | None], bool]) -> None:
        """Judge every link anew, by its address and, if it was left out, the nearest page it is on."""
        async with self.db.write(source) as tx:
            rows = await tx.all("links_of_source", source=source)
            changed = [
                {"link": row["id"], "admitted": int(belongs)}
                async for row in in_turns(rows, lambda row: str(row["url"]))
                if (belongs := admits(row["url"], row["found_on"])) != bool(row["admitted"])
            ]
            await tx.many("readmit_link", changed)
            await tx.run("mark_graph", source=source, changed=1)

    async def urls(self, source: SourceId) -> list[tuple[str, bool]]:
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


def _by_link(rows: Sequence[Row]) -> dict[int, list[Row]]:
    parts: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        parts[row["link_id"]].append(row)
    return parts


def _link(row: Row, texts: Sequence[Row], pages: Sequence[Row], keywords: Sequence[Row]) -> LinkView:
    return LinkView(
        url=row["url"],
        text=max((each["text"] for each in texts), key=lambda text: (len(text), text)),
        score=row["score"],
        keywords={each["keyword"]: each["score"] for each in keywords},
        comment=row["comment"],
        crawl_time=max(filter(None, (at(each["crawl_time"]) for each in texts)), default=None),
        pages=tuple(each["url"] for each in pages),
        page_count=sum(each["pages"] for each in texts),
    )


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
        _link_record(row, standing, number[0]["places"], keywords[row["id"]])
        for row, standing, number in zip(rows, places, counts, strict=True)
    ]


def _link_record(row: Row, places: Sequence[Row], count: int, keywords: dict[str, float]) -> LinkRecord:
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
