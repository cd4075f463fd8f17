"""Scores of links in the store."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.crawl.counters import total
from afresh.links.score import Answered, AskedLink, Unasked, Weighing, Worth, lacking, worth
from afresh.model.records import Run, SourceId
from afresh.store.dialect import Row, Session
from afresh.store.repository import Repository


class LinkScoreRepository(Repository):
    """Read and write what links are worth."""

    async def seal(self, source: SourceId) -> str | None:
        """How all links were scored last; "" if some are not, None if none ever were."""
        async with self.db.read() as tx:
            row = await tx.one("links_seal", source=source)
            return None if row is None else row["links_scored"]

    async def unasked(
        self,
        source: SourceId,
        recipe: str,
        keywords: Sequence[str],
        among: Sequence[AskedLink] | None = None,
    ) -> list[Unasked]:
        """Links with texts that a scorer was not asked about, each with the keywords that are left."""
        asked = {"source": source, "recipe": recipe, "keywords": _list(keywords)}
        async with self.db.read() as tx:
            if among is None:
                rows = await tx.all("unasked_links", **asked)
            else:
                rows = await tx.all("unasked_among", **asked, urls=sorted({link.url for link in among}))
        wanted = None if among is None else set(among)
        found = [(AskedLink(row["url"], row["text"]), row) for row in rows]
        left = [
            Unasked(link, lacking(_known(link, row), recipe, keywords))
            for link, row in found
            if wanted is None or link in wanted
        ]
        return [each for each in left if each.keywords]

    async def count_unasked(self, source: SourceId, recipe: str, keywords: Sequence[str]) -> int:
        """How many links with texts a scorer was not asked about, or not for all keywords."""
        asked = {"source": source, "recipe": recipe, "keywords": _list(keywords)}
        async with self.db.read() as tx:
            rows = await tx.all("unasked_counts", **asked)
        some = AskedLink("", "")
        return sum(int(row["pairs"]) for row in rows if lacking(_known(some, row), recipe, keywords))

    async def count_asked(self, source: SourceId) -> int:
        """How many links with texts a scorer was ever asked about."""
        async with self.db.read() as tx:
            row = await tx.one("asked_count", source=source)
            return int(row["pairs"]) if row else 0

    async def keep(
        self,
        run: Run,
        answers: Sequence[Answered],
        weighing: Weighing,
        counts: Mapping[str, int],
        now: datetime,
    ) -> None:
        """Write what a scorer said, score its links by it and count what that took."""
        urls = sorted({answer.link.url for answer in answers})
        async with self.db.write() as tx:
            rows = await tx.all("answers_among", source=run.source_id, urls=urls) if urls else []
            known = {answer.link: answer for answer in map(_answer, rows)}
            joined = [known[each.link].joined(each) if each.link in known else each for each in answers]
            await tx.many("keep_answer", [_row(run.source_id, each, now) for each in joined])
            if urls:
                await _weigh(tx, run.source_id, weighing, urls)
            row = await tx.one("counts_of_run", run=run.id)
            before = json.loads(row["counts"]) if row else {}
            await tx.run("count_run", run=run.id, now=now, counts=json.dumps(total([before, counts])))

    async def weigh(self, source: SourceId, weighing: Weighing, seal: str | None) -> None:
        """Score all links of a source anew by what is on record; answers for texts that are gone, go."""
        async with self.db.write() as tx:
            await tx.run("forget_answers", source=source)
            await _weigh(tx, source, weighing)
            await tx.run("seal_links", source=source, seal=seal)

    async def of_source(self, source: SourceId) -> dict[str, float]:
        """The links that are worth something: address to score."""
        async with self.db.read() as tx:
            return {row["url"]: row["score"] for row in await tx.all("scored_links", source=source)}

    async def calls_since(self, moment: datetime) -> int:
        """Calls to models that all runs of this store have made since a moment."""
        async with self.db.read() as tx:
            rows = await tx.all("counts_since", since=moment)
            return sum(int(json.loads(row["counts"]).get("ai_calls", 0)) for row in rows)


async def _weigh(
    tx: Session, source: SourceId, weighing: Weighing, urls: Sequence[str] | None = None
) -> None:
    """Write what links are worth; a link whose worth stays is not touched."""
    some = {} if urls is None else {"urls": urls}
    end = "" if urls is None else "_among"
    answers: dict[int, list[Answered]] = defaultdict(list)
    for row in await tx.all(f"answers{end}", source=source, **some):
        answers[row["link_id"]].append(_answer(row))
    now = {link: found for link, given in answers.items() if (found := worth(given, weighing)).keywords}
    before = _worths(await tx.all(f"worths{end}", source=source, **some))
    changed = [link for link in now | before if now.get(link, Worth()) != before.get(link, Worth())]
    rows = [(link, now.get(link, Worth())) for link in changed]
    await tx.many("set_worth", [{"link": k, "score": w.score, "comment": w.comment} for k, w in rows])
    if changed:
        await tx.run("drop_keywords", links=changed)
    words = [(link, word, score) for link, found in rows for word, score in found.keywords.items()]
    await tx.many("insert_keyword", [{"link": k, "keyword": word, "score": s} for k, word, s in words])


def _worths(rows: Sequence[Row]) -> dict[int, Worth]:
    words: dict[int, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["keyword"] is not None:
            words[row["id"]][row["keyword"]] = row["keyword_score"]
    return {row["id"]: Worth(row["score"], words[row["id"]], row["comment"]) for row in rows}


def _known(link: AskedLink, row: Row) -> Answered | None:
    if row["recipe"] is None:
        return None
    return Answered(link=link, recipe=row["recipe"], asked=frozenset(json.loads(row["keywords"])))


def _answer(row: Row) -> Answered:
    return Answered(
        link=AskedLink(row["url"], row["text"]),
        recipe=row["recipe"],
        asked=frozenset(json.loads(row["keywords"])),
        scores=json.loads(row["answer"]),
        comment=row["comment"],
    )


def _row(source: SourceId, answer: Answered, now: datetime) -> dict[str, object]:
    return {
        "source": source,
        "url": answer.link.url,
        "text": answer.link.text,
        "recipe": answer.recipe,
        "keywords": _list(answer.asked),
        "answer": json.dumps(dict(answer.scores)),
        "comment": answer.comment,
        "now": now,
    }


def _list(keywords: Sequence[str] | frozenset[str]) -> str:
    return json.dumps(sorted(keywords))
