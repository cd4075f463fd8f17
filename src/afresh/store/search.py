"""Full-text search: all words first, then any of them, the best passage of each page."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from afresh.core.analysis import ENGLISH, SIMPLE, search_config
from afresh.core.model import SourceId
from afresh.core.views import Hit
from afresh.store.dialect import Database, Row, Session
from afresh.store.records import at

if TYPE_CHECKING:
    from afresh.core.query import Query

SHOWN = 5  # other addresses of one content
WIDTH = 20  # candidates looked at per hit asked for: a page may own many of the best chunks

_Match = tuple[str, str]  # a full-text table and the expression it was asked with


class Searches:
    """Answers to what people type."""

    db: Database

    async def search(
        self,
        query: str,
        *,
        source: SourceId | None = None,
        language: str | None = None,
        limit: int = 10,
        every_chunk: bool = False,
    ) -> list[Hit]:
        """The best hits, one per page unless every chunk is wanted; any text is a valid query."""
        from afresh.core.query import match_all, match_any, parse

        found: dict[int, tuple[float, _Match]] = {}  # chunk -> score, and what it matched
        contents: set[tuple[int, str]] = set()  # one page under two addresses is one answer
        async with self.db.read() as tx:
            configs = await _configs(tx, language)
            parsed = parse(query, [config for own in configs.values() for config in own])
            for tier, match in enumerate((match_all, match_any)):
                if not parsed or len(found) >= limit:
                    break
                asked = {table: match(parsed, own) for table, own in configs.items() if own}
                for row, matched in await _candidates(tx, asked, source, language, limit * WIDTH):
                    if len(found) >= limit:
                        break
                    content = (row["source_id"], row["content_hash"])
                    if row["id"] in found or (not every_chunk and content in contents):
                        continue
                    contents.add(content)
                    found[row["id"]] = (-row["rank"] * 0.1**tier, matched)
            return await _hits(tx, found, parsed)


async def _configs(tx: Session, language: str | None) -> dict[str, list[str]]:
    """The configurations that pages of a language, or all, are indexed under, by full-text table."""
    found = [str(row["config"]) for row in await tx.all("configs")]
    if language is not None:  # a page that an older afresh has indexed is simple
        found = [config for config in found if config in (search_config(language), SIMPLE)]
    return {
        "english": [config for config in found if config == ENGLISH],
        "simple": [config for config in found if config != ENGLISH],
    }


async def _candidates(
    tx: Session,
    asked: Mapping[str, str | None],
    source: SourceId | None,
    language: str | None,
    limit: int,
) -> list[tuple[Row, _Match]]:
    rows: list[tuple[Row, _Match]] = []
    for table, match in asked.items():
        if match is None:
            continue
        where = {"match": match, "source": source, "language": language, "limit": limit}
        rows += [(row, (table, match)) for row in await tx.all(f"search_{table}", **where)]
    return sorted(rows, key=lambda found: found[0]["rank"])


async def _hits(tx: Session, found: Mapping[int, tuple[float, _Match]], query: "Query") -> list[Hit]:
    rows = {row["id"]: row for row in await tx.all("chunk_pages", chunks=list(found))}
    addresses = await _addresses(tx, rows.values())
    from afresh.core.passages import passage

    analysed = {chunk for chunk, row in rows.items() if row["analysed"]}
    own = {chunk: match for chunk, (_, match) in found.items() if chunk not in analysed}
    passages = {chunk: text async for chunk, text in _passages(tx, own)}
    for chunk in analysed:
        passages[chunk] = passage(rows[chunk]["content"], query, rows[chunk]["config"])
    return [
        _hit(rows[chunk], score, passages.get(chunk), addresses)
        for chunk, (score, _) in found.items()
        if chunk in rows
    ]


async def _addresses(tx: Session, rows: Iterable[Row]) -> dict[tuple[int, str], list[str]]:
    """Where the content of some pages stands, by source and hash."""
    addresses: dict[tuple[int, str], list[str]] = defaultdict(list)
    for row in await tx.all("same_content", hashes=[row["content_hash"] for row in rows]):
        addresses[row["source_id"], row["content_hash"]].append(row["url"])
    return addresses


async def _passages(tx: Session, found: Mapping[int, _Match]) -> AsyncIterator[tuple[int, str]]:
    for table, match in dict.fromkeys(found.values()):
        chunks = [chunk for chunk, used in found.items() if used == (table, match)]
        for row in await tx.all(f"passages_{table}", match=match, chunks=chunks):
            yield row["id"], row["text"]


def _hit(
    row: Row, score: float, passage: str | None, addresses: Mapping[tuple[int, str], Sequence[str]]
) -> Hit:
    metadata = json.loads(row["metadata"])
    return Hit(
        url=row["url"],
        title=row["title"] or row["url"],
        text=(passage or row["content"]) if row["has_body"] else "",
        path=tuple(metadata["path"]),
        score=round(score, 6),
        source=row["source_name"],
        version=row["source_version"] or None,
        language=row["language"],
        checked_at=at(row["checked_at"]),
        changed_at=at(row["changed_at"]),
        also_at=tuple(url for url in addresses[row["source_id"], row["content_hash"]] if url != row["url"])[
            :SHOWN
        ],
    )
