"""Full-text search in the store."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from afresh.model.fetch import Chunk
from afresh.model.records import PageId, SourceId
from afresh.search.query import alternatives, parse, phrases_of
from afresh.search.request import Narrowed
from afresh.search.results import Match, Passage
from afresh.store.dialect import Row, Session
from afresh.store.matching import Corner, Known, Table
from afresh.store.narrowing import pages_within
from afresh.store.records import at, looked_at
from afresh.store.repository import Repository

MANY_COUNTS = 10_000
LONGEST_MAP = 5_000_000  # bytes
SHOWN = 5  # other addresses of one content


class SearchRepository(Repository):
    """Find chunks by their words."""

    async def matches(self, query: str, within: Narrowed, limit: int, *, strict: bool = False) -> list[Match]:
        """The chunks that hold words of a query, the best first; strictly, those in quotes as they stand."""
        found: list[Match] = []
        async with self.db.read() as tx:
            known = await self._renewed_known(tx)
            configs = known.tables(within.language)
            parsed = parse(query, [config for own in configs.values() for config in own])
            corner = await self._corner(tx, within, known)
            for table, own in configs.items():
                asked = alternatives(parsed, own) if own else ()
                must = phrases_of(parsed, own) if strict else None
                if asked and must:
                    found += await self._table(tx, table, corner, known).exact(must, asked, limit)
                elif asked:
                    found += await self._table(tx, table, corner, known).best(asked, limit)
        return sorted(found, key=lambda each: (-each.score, each.chunk))[:limit]

    async def scores(self, query: str, chunks: Sequence[int]) -> list[Match]:
        """How well some chunks match that `matches` may have left out because there are too many."""
        found: list[Match] = []
        async with self.db.read() as tx:
            known = self.caches.known if self.caches.known.newest else await self._renewed_known(tx)
            configs = known.tables(None)
            parsed = parse(query, [config for own in configs.values() for config in own])
            for table, own in configs.items():
                asked = alternatives(parsed, own) if own and chunks else ()
                if asked:
                    found += await self._table(tx, table, Corner(), known).scores(asked, chunks)
        return found

    def _table(self, tx: Session, name: str, corner: Corner, known: Known) -> Table:
        return Table(tx, name, corner, known)

    async def _corner(self, tx: Session, within: Narrowed, known: Known) -> Corner:
        return await _corner(tx, within, known)

    async def _renewed_known(self, tx: Session) -> Known:
        """What is known of the index, forgotten when new chunks come."""
        row = await tx.one("newest")
        newest = row["chunk"] if row else 0
        if newest != self.caches.known.newest or len(self.caches.known.counted) > MANY_COUNTS:
            configs = [str(each["config"]) for each in await tx.all("configs")]
            self.caches.known = Known(newest, tuple(configs))
        return self.caches.known

    async def passages(self, chunks: Sequence[int]) -> list[Passage]:
        """The chunks with their pages, in the order asked for; those that are gone are left out."""
        async with self.db.read() as tx:
            rows = {row["id"]: row for row in await tx.all("chunk_pages", chunks=list(chunks))}
            addresses = await _addresses(tx, rows.values())
            self.forget_chunks([chunk for chunk in chunks if chunk not in rows])
            return [_passage(rows[chunk], addresses) for chunk in chunks if chunk in rows]

    async def page_chunks(self, pages: Sequence[PageId]) -> Mapping[PageId, Sequence[Chunk]]:
        """All chunks of some pages, in the order of their text."""
        found: dict[PageId, list[Chunk]] = {page: [] for page in pages}
        async with self.db.read() as tx:
            for row in await tx.all("page_chunks", pages=list(pages)):
                found[PageId(row["page_id"])].append(chunk_from(row))
        return found

    def forget_chunks(self, chunks: Sequence[int]) -> None:
        """Forget chunks that are gone: who is nearest is kept in memory and does not hear of it."""
        for _, nearby in self.caches.matrices.values() if chunks else ():
            nearby.let_go(chunks)


async def _corner(tx: Session, within: Narrowed, known: Known) -> Corner:
    """Where a search may answer from, and how much that is; chunks stay with the source they came to."""
    if not within:
        return Corner()
    if within in known.corners:
        return known.corners[within]
    pages = [row["id"] for row in await pages_within(tx, within)]
    row = await tx.one("count_chunks", pages=pages)
    number, inside = row["number"] if row else 0, None
    if known.newest <= LONGEST_MAP and (2 * number <= known.newest or not within.by_page):
        chunks = [each["id"] for each in await tx.all("chunks_within", pages=pages)]
        inside = _map_of(chunks, known.newest)
    corner = Corner(pages, number, known.newest, inside)
    if not within.by_page:
        known.corners[within] = corner
    return corner


def _map_of(chunks: Sequence[int], newest: int) -> bytes:
    """A byte for every chunk up to the newest, the first for number 1: 1 for some, 0 for all others."""
    places = bytearray(newest)
    for chunk in chunks:
        places[chunk - 1] = 1
    return bytes(places)


async def _addresses(tx: Session, rows: Iterable[Row]) -> dict[tuple[int, str], list[str]]:
    """Where the content of some pages stands, by source and hash."""
    addresses: dict[tuple[int, str], list[str]] = defaultdict(list)
    hashes = list({row["content_hash"] for row in rows})
    for row in await tx.all("same_content", hashes=hashes):
        addresses[row["source_id"], row["content_hash"]].append(row["url"])
    return addresses


def chunk_from(row: Row) -> Chunk:
    """A row of `chunks`."""
    metadata = json.loads(row["metadata"])
    return Chunk(
        content=row["content"],
        path=tuple(metadata["path"]),
        level=metadata["level"],
        types=tuple(metadata["types"]),
        text_hash=row["text_hash"],
    )


def _passage(row: Row, addresses: Mapping[tuple[int, str], Sequence[str]]) -> Passage:
    others = [url for url in addresses[row["source_id"], row["content_hash"]] if url != row["url"]]
    _, seen_at, checked_at = looked_at(row)
    return Passage(
        chunk=row["id"],
        page=PageId(row["page_id"]),
        order=row["sort_order"],
        content=row["content"] if row["whole"] else None,
        heading=tuple(json.loads(row["metadata"])["path"]),
        source_id=SourceId(row["source_id"]),
        content_hash=row["content_hash"],
        url=row["url"],
        title=row["title"] or row["url"],
        source=row["source_name"],
        version=row["source_version"] or None,
        depth=row["depth"],
        language=row["language"],
        checked_at=checked_at,
        seen_at=seen_at,
        changed_at=at(row["changed_at"]),
        also_at=tuple(others[:SHOWN]),
    )
