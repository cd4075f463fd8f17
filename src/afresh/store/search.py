"""Full-text search: all words first, then any of them, the best passage of each page."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from afresh.core.model import SourceId
from afresh.core.views import Hit
from afresh.store.dialect import Database, Row, Session
from afresh.store.records import at

CONFIGS = ("english", "simple")
SHOWN = 5  # other addresses of one content
WIDTH = 20  # candidates looked at per hit asked for: a page may own many of the best chunks


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

        parsed = parse(query)
        found: dict[int, tuple[float, str]] = {}  # chunk -> score, the expression it matched
        contents: set[tuple[int, str]] = set()  # one page under two addresses is one answer
        async with self.db.read() as tx:
            for tier, match in enumerate((match_all(parsed), match_any(parsed))):
                if match is None or len(found) >= limit:
                    continue
                rows = await _candidates(tx, match, source, language, limit * WIDTH)
                for row in rows:
                    if len(found) >= limit:
                        break
                    content = (row["source_id"], row["content_hash"])
                    if row["id"] in found or (not every_chunk and content in contents):
                        continue
                    contents.add(content)
                    found[row["id"]] = (-row["rank"] * 0.1**tier, match)
            return await _hits(tx, found)


async def _candidates(
    tx: Session, match: str, source: SourceId | None, language: str | None, limit: int
) -> list[Row]:
    rows: list[Row] = []
    for config in CONFIGS:
        rows += await tx.all(f"search_{config}", match=match, source=source, language=language, limit=limit)
    return sorted(rows, key=lambda row: row["rank"])


async def _hits(tx: Session, found: dict[int, tuple[float, str]]) -> list[Hit]:
    rows = {row["id"]: row for row in await tx.all("chunk_pages", chunks=list(found))}
    addresses = await _addresses(tx, rows.values())
    passages = {chunk: text async for chunk, text in _passages(tx, found)}
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


async def _passages(tx: Session, found: dict[int, tuple[float, str]]) -> AsyncIterator[tuple[int, str]]:
    for match in dict.fromkeys(match for _, match in found.values()):
        chunks = [chunk for chunk, (_, used) in found.items() if used == match]
        for config in CONFIGS:
            for row in await tx.all(f"passages_{config}", match=match, chunks=chunks):
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
