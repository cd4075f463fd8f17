"""Links, their scores, and the frontier of a source: links that were not crawled because of a limit."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from afresh.aio import yield_in_turns
from afresh.links.score import (
    KeywordWeights,
    LinkToScore,
    LinkWorth,
    ScoredLink,
    UnscoredLink,
    missing_keywords,
    weigh_link,
)
from afresh.model.filters import ALL_LINKS, LinkCursor, LinkedPage, LinkFilter, LinkRecord, Sources
from afresh.model.records import PageId, Run, Source, SourceId
from afresh.model.reports import LinkView
from afresh.store.content import add_counts
from afresh.store.dialect import Row, Transaction, among_sources
from afresh.store.records import at, record, source_from
from afresh.store.repository import MANY, Repository

LAST_POSITION = 1_000_000  # position on the page of a link that a person added
MAX_PAGES = 20  # pages to show for each link
MAX_CANDIDATES = 200  # pages per link that are read, to show the ones nearest to the root


class LinkRepository(Repository):
    async def leading_to(self, url: str, source: SourceId | None = None) -> tuple[Source, str, int, bool, bool] | None:
        """Return source, page, depth, absence of `nofollow` and admission of the link to a URL nearest to a root."""
        row = await self._one("links_to", url=url, source=source)
        if row is None:
            return None
        return source_from(row), row["page"], row["page_depth"], bool(row["follow"]), bool(row["admitted"])

    async def of_source(
        self,
        source: SourceId,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        """Return the links of a source or of one page, best score first, with the pages that contain them."""
        which = {"source": source, "on_page": page, "keyword": keyword, "least": min_score}
        async with self.db.read() as tx:
            rows = await tx.all("links", **which, limit=limit or MANY)
            ids = [row["id"] for row in rows]
            texts = _by_link(await tx.all("texts_of_links", links=ids))
            pages = _by_link(await tx.all("pages_of_links", links=ids, most=MAX_PAGES))
            keywords = _by_link(await tx.all("keywords_of_links", links=ids))
        return [_link(row, texts[row["id"]], pages[row["id"]], keywords[row["id"]]) for row in rows]

    async def records(
        self, sources: Sources, which: LinkFilter = ALL_LINKS, *, after: LinkCursor | None = None, limit: int
    ) -> list[LinkRecord]:
        """Return links after a cursor, best score first."""
        score, url, number = after or (None, None, None)
        place = {"after": number, "after_score": score, "after_url": url}
        asked = {"keyword": which.keyword, "least": which.min_score, **place, "limit": limit}
        async with self.db.read() as tx:
            if sources is not None and len(sources) == 1 and which.page is None and which.url is None:
                rows = await tx.all("best_links", source=sources[0], **asked)  # in index order
            else:
                among = {**among_sources(sources), "page": which.page, "url": which.url}
                rows = await tx.all("link_records", **among, **asked)
            return await _joined(tx, rows)

    async def get(self, link: int) -> LinkRecord | None:
        async with self.db.read() as tx:
            row = await tx.one("link_record", link=link)
            return (await _joined(tx, [row]))[0] if row else None

    async def add(self, page: PageId, url: str, text: str) -> int | None:
        """Add a link, which stays until the page's links change; return its id, or None if there is no such page."""
        seen = await self._one("page_record", page=page)
        if seen is None:
            return None
        source = SourceId(seen["source_id"])
        async with self.db.write(source) as tx:
            link = {"source": source, "url": url, "admitted": 0, "crawl_time": seen["crawl_time"]}
            await tx.many("upsert_link", [link])
            number = await tx.number("link_ids", source=source, urls=[url])
            edge = {"page": page, "link": number, "position": LAST_POSITION, "text": text, "follow": 1}
            await tx.many("insert_page_link", [edge])
            await tx.run("mark_graph", source=source, changed=1)
            return number

    async def set_worth(
        self, link: int, score: float | None, comment: str | None, keywords: Mapping[str, float] | None = None
    ) -> bool:
        """Set score, comment and keywords of a link, until it is scored again; return False if the link is gone."""
        async with self.db.write() as tx:
            if await tx.one("link_row", link=link) is None:
                return False
            await tx.many("set_worth", [{"link": link, "score": score, "comment": comment}])
            if keywords is not None:
                await _replace_keywords(tx, {link: keywords})
            return True

    async def remove(self, link: int) -> bool:
        """Remove a link from all pages until these store their links again; return False if no page contains it."""
        async with self.db.write() as tx:
            row = await tx.one("link_row", link=link)
            if row is None or not await tx.run("remove_link", link=link):
                return False
            await tx.run("mark_graph", source=row["source_id"], changed=1)
            await tx.run("unseal_links", source=row["source_id"])
            return True

    async def frontier_is_open(self, source: SourceId, rules: str) -> tuple[bool, bool]:
        """Return whether a limit left out links, and whether other rules than `rules` admitted the links last."""
        row = await self._one("source_by_id", source=source)
        return (bool(row["frontier_open"]), row["rules_seen"] not in ("", rules)) if row else (False, False)

    async def judge(self, source: SourceId, admits: Callable[[str, str | None], bool]) -> None:
        """Compute again whether links belong to the source, and store changes.

        `admits` gets a URL and, if the link was not admitted so far, the page nearest to the root that contains it.
        """
        async with self.db.write(source) as tx:
            rows = await tx.all("links_of_source", source=source)
            changed = [
                {"link": row["id"], "admitted": int(belongs)}
                async for row in yield_in_turns(rows, lambda row: str(row["url"]))
                if (belongs := admits(row["url"], row["found_on"])) != bool(row["admitted"])
            ]
            await tx.many("readmit_link", changed)
            await tx.run("mark_graph", source=source, changed=1)

    async def urls(self, source: SourceId) -> list[tuple[str, bool]]:
        """Return the URLs of all pages and of admitted links, each with whether the source lists it."""
        return [(row["url"], bool(row["listed"])) for row in await self._all("addresses", source=source)]

    async def left_out(self, source: SourceId) -> list[str]:
        """Return the URLs of links without `nofollow` that are not admitted."""
        return [row["url"] for row in await self._all("left_out", source=source)]

    async def close_frontier(self, source: SourceId, rules: str, max_depth: int) -> None:
        """Store the rules that admitted the links, and whether some links are still not followed because of a limit."""
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
    return record(
        LinkView,
        row,
        text=max((each["text"] for each in texts), key=lambda text: (len(text), text)),
        keywords={each["keyword"]: each["score"] for each in keywords},
        crawl_time=max(filter(None, (at(each["crawl_time"]) for each in texts)), default=None),
        pages=tuple(each["url"] for each in pages),
        page_count=sum(each["pages"] for each in texts),
    )


async def _joined(tx: Transaction, rows: Sequence[Row]) -> list[LinkRecord]:
    ids = [row["id"] for row in rows]
    keywords: dict[int, dict[str, float]] = defaultdict(dict)
    for row in await tx.all("keywords_of_links", links=ids):
        keywords[row["link_id"]][row["keyword"]] = row["score"]
    which = [{"link": link, "limit": MAX_CANDIDATES, "most": MAX_PAGES} for link in ids]
    places = await tx.each("places_of_link", which)
    counts = await tx.each("count_places", [{"link": link} for link in ids])
    return [
        record(
            LinkRecord,
            row,
            keywords=keywords[row["id"]],
            crawl_time=at(standing[0]["crawl_time"]) if standing else None,
            page_count=number[0]["places"],
            pages=tuple(record(LinkedPage, each, id=PageId(each["page_id"])) for each in standing),
        )
        for row, standing, number in zip(rows, places, counts, strict=True)
    ]


class LinkScoreRepository(Repository):
    async def seal(self, source: SourceId) -> str | None:
        """Return the fingerprint of the settings that scored the links; "" if some lack scores, None if all do."""
        row = await self._one("links_seal", source=source)
        return None if row is None else row["links_scored"]

    async def unasked(
        self, source: SourceId, recipe: str, keywords: Sequence[str], among: Sequence[LinkToScore] | None = None
    ) -> list[UnscoredLink]:
        """Return the links of a source that still need scores, each with the keywords without a score."""
        asked = {"source": source, "recipe": recipe, "keywords": _sorted(keywords)}
        if among is None:
            rows, wanted = await self._all("unasked_links", **asked), None
        else:
            urls, wanted = sorted({link.url for link in among}), set(among)
            rows = await self._all("unasked_among", **asked, urls=urls)
        found = ((LinkToScore(row["url"], row["text"]), row) for row in rows)
        return [
            UnscoredLink(link, left)
            for link, row in found
            if (wanted is None or link in wanted) and (left := missing_keywords(_known(link, row), recipe, keywords))
        ]

    async def count_unasked(self, source: SourceId, recipe: str, keywords: Sequence[str]) -> int:
        asked = {"source": source, "recipe": recipe, "keywords": _sorted(keywords)}
        rows, some = await self._all("unasked_counts", **asked), LinkToScore("", "")
        return sum(int(row["pairs"]) for row in rows if missing_keywords(_known(some, row), recipe, keywords))

    async def count_asked(self, source: SourceId) -> int:
        return await self._number("asked_count", source=source)

    async def keep(
        self, run: Run, found: Sequence[ScoredLink], weighing: KeywordWeights, counts: Mapping[str, int], now: datetime
    ) -> None:
        """Store what a scorer found, recompute the scores of these links, and add `counts` to the run's counts."""
        urls = sorted({each.link.url for each in found})
        async with self.db.write() as tx:
            rows = await tx.all("answers_among", source=run.source_id, urls=urls) if urls else []
            known = {answer.link: answer for answer in map(_answer, rows)}
            joined = [known[each.link].merge(each) if each.link in known else each for each in found]
            await tx.many("keep_answer", [_row(run.source_id, each, now) for each in joined])
            if urls:
                await _weigh(tx, run.source_id, weighing, urls)
            await add_counts(tx, run, [counts], now)

    async def weigh(self, source: SourceId, weighing: KeywordWeights, seal: str | None) -> None:
        """Recompute all link scores of a source from stored answers; delete the answers for deleted links."""
        async with self.db.write() as tx:
            await tx.run("forget_answers", source=source)
            await _weigh(tx, source, weighing)
            await tx.run("seal_links", source=source, seal=seal)

    async def of_source(self, source: SourceId) -> dict[str, float]:
        """Return the scores of all links that have one, by URL."""
        return {row["url"]: row["score"] for row in await self._all("scored_links", source=source)}

    async def calls_since(self, moment: datetime) -> int:
        """Return how many model calls all runs of this store have made since a time."""
        rows = await self._all("counts_since", since=moment)
        return sum(int(json.loads(row["counts"]).get("ai_calls", 0)) for row in rows)


async def _weigh(
    tx: Transaction, source: SourceId, weighing: KeywordWeights, urls: Sequence[str] | None = None
) -> None:
    some, end = ({}, "") if urls is None else ({"urls": urls}, "_among")
    answers: dict[int, list[ScoredLink]] = defaultdict(list)
    for row in await tx.all(f"answers{end}", source=source, **some):
        answers[row["link_id"]].append(_answer(row))
    now = {link: found for link, given in answers.items() if (found := weigh_link(given, weighing)).keywords}
    rows_before = await tx.all(f"worths{end}", source=source, **some)
    scores: dict[int, dict[str, float]] = defaultdict(dict)
    for row in rows_before:
        if row["keyword"] is not None:
            scores[row["id"]][row["keyword"]] = row["keyword_score"]
    before = {row["id"]: LinkWorth(row["score"], scores[row["id"]], row["comment"]) for row in rows_before}
    changed = [link for link in now | before if now.get(link, LinkWorth()) != before.get(link, LinkWorth())]
    worths = {link: now.get(link, LinkWorth()) for link in changed}
    await tx.many("set_worth", [{"link": k, "score": w.score, "comment": w.comment} for k, w in worths.items()])
    if changed:
        await _replace_keywords(tx, {link: worth.keywords for link, worth in worths.items()})


async def _replace_keywords(tx: Transaction, keywords: Mapping[int, Mapping[str, float]]) -> None:
    await tx.run("drop_keywords", links=list(keywords))
    words = ((link, word, score) for link, scores in keywords.items() for word, score in scores.items())
    await tx.many("insert_keyword", [{"link": link, "keyword": word, "score": score} for link, word, score in words])


def _known(link: LinkToScore, row: Row) -> ScoredLink | None:
    if row["recipe"] is None:
        return None
    return ScoredLink(link=link, recipe=row["recipe"], asked=frozenset(json.loads(row["keywords"])))


def _answer(row: Row) -> ScoredLink:
    link, asked = LinkToScore(row["url"], row["text"]), frozenset(json.loads(row["keywords"]))
    return record(ScoredLink, row, link=link, asked=asked, scores=json.loads(row["answer"]))


def _row(source: SourceId, answer: ScoredLink, now: datetime) -> dict[str, object]:
    whose = {"source": source, "url": answer.link.url, "text": answer.link.text, "recipe": answer.recipe}
    given = {"answer": json.dumps(dict(answer.scores)), "comment": answer.comment}
    return {**whose, **given, "keywords": _sorted(answer.asked), "now": now}


def _sorted(keywords: Sequence[str] | frozenset[str]) -> str:
    return json.dumps(sorted(keywords))
