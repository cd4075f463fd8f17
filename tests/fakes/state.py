"""The state of a store after a fault: what it holds, and whether it is sound."""

import asyncio
import re
import sqlite3
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afresh.store.sqlite import add_functions, inflated

ZLIB = b"\x78\x5e"  # how a compressed text begins
CONTENT = "select id from pages where content_hash is not null"
UNSOUND = {
    "content without its document": f"{CONTENT} and id not in (select page_id from documents)",
    "content without a chunk": f"{CONTENT} and id not in (select page_id from chunks)",
    "a document or chunk without content": f"select page_id from documents where page_id not in ({CONTENT}) "
    f"union all select page_id from chunks where page_id not in ({CONTENT})",
    "chunks that are not numbered one after the other": "select page_id from chunks group by page_id "
    "having count(*) <> count(distinct sort_order) or max(sort_order) <> count(*) - 1",
    "a score without a keyword, or a keyword without a score": "select id from links where "
    "(score is null) <> (id not in (select link_id from link_keywords))",
    "an address twice": "select url from pages group by source_id, url having count(*) > 1",
    "a page twice in the queue": "select page_id from page_crawls where outcome is null and page_id > 0 "
    "group by page_id having count(*) > 1",
    "a finished attempt that is locked": "select id from page_crawls where outcome is not null "
    "and (locked_by is not null or locked_at is not null)",
    "half a lock": "select id from page_crawls where (locked_by is null) <> (locked_at is null)",
    "an open row of a run that is over": "select c.id from page_crawls c join runs r on r.id = c.run_id "
    "where c.outcome is null and r.state not in ('queued', 'running', 'cancelled')",
    "two unfinished runs of a source": "select source_id from runs "
    "where state in ('queued', 'running', 'cancelled') "
    "group by source_id having count(*) > 1",
    "a change told twice": "select url from changes where kind in ('new', 'deleted') "
    "group by run_id, source_id, url, kind having count(*) > 1",
}
VECTORS = "select v.id from vectors v join models m on m.id = v.model_id where "
OF_SQLITE = {"a vector of a wrong length": VECTORS + "length(v.vector) <> m.dimensions"}
OF_POSTGRES = {
    "a vector of a wrong length": VECTORS + "vector_dims(v.vector) <> m.dimensions",
    "a chunk that no word finds": "select id from chunks where words is null",
}
ANSWERED = {
    "a chunk without a vector of the model that answers": "select c.id from chunks c join models m "
    "on m.serving = 1 left join vectors v on v.model_id = m.id and v.text_hash = c.text_hash "
    "where v.id is null"
}
HELD = {
    "a lock": "select id from page_crawls where locked_by is not null",
    "a locked host": "select domain from hosts where locked_by is not null",
    "a worker": "select name from workers",
    "a run that is not over": "select id from runs where state = 'running'",
}
FULL_TEXT = {"chunks_english": "config = 'english'", "chunks_simple": "config <> 'english'"}
Place = Path | str  # the file of a SQLite store, or the address of a PostgreSQL database


def rows(store: Place, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows of the store, read by a connection of our own."""
    if isinstance(store, str):
        with ThreadPoolExecutor(1) as beside:  # a test that asks may have a loop of its own
            return beside.submit(asyncio.run, _fetched(store, sql, values)).result()
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)) as connection:
        add_functions(connection)
        return [tuple(map(_readable, row)) for row in connection.execute(sql, values)]


def _readable(value: Any) -> Any:
    return inflated(value) if isinstance(value, bytes) and value.startswith(ZLIB) else value


async def _fetched(url: str, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        numbers = iter(range(1, len(values) + 1))
        asked = re.sub(r"\?", lambda _: f"${next(numbers)}", sql) if values else sql
        return [tuple(row) for row in await connection.fetch(asked, *values)]
    finally:
        await connection.close()


def faults_in(store: Place, *, stable: bool = True, embedded: bool = True) -> list[str]:
    """Everything that is wrong with a store.

    Settled: nobody works, so nothing may be held either. Embedded: runs and searches had the same model.
    """
    found = []
    own = OF_POSTGRES if isinstance(store, str) else OF_SQLITE
    looked_for = UNSOUND | own | (HELD if stable else {}) | (ANSWERED if embedded else {})
    for what, sql in looked_for.items():
        if wrong := rows(store, sql):
            found.append(f"{what}: {len(wrong)}, such as {wrong[0][0]!r}")
    return found if isinstance(store, str) else [*found, *_file_faults(store)]


def _file_faults(store: Path) -> list[str]:
    found = []
    if (text := rows(store, "pragma integrity_check")) != [("ok",)]:
        found.append(f"integrity: {text[0][0]}")
    if broken := rows(store, "pragma foreign_key_check"):
        found.append(f"a reference to nothing: {broken[0]}")
    return [*found, *_full_text_faults(store)]


def _full_text_faults(store: Path) -> list[str]:
    found = []
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        add_functions(connection)
        for table, which in FULL_TEXT.items():
            count = f"select (select count(*) from {table}_docsize), (select count(*) from chunks where {which})"
            indexed, chunks = connection.execute(count).fetchone()
            if indexed != chunks:
                found.append(f"{table}: {indexed} rows for {chunks} chunks")
            try:
                connection.execute(f"insert into {table} ({table}) values ('integrity-check')")
            except sqlite3.DatabaseError as error:
                found.append(f"{table}: {error}")
    return found


def assert_sound(store: Place, *, stable: bool = True, embedded: bool = True) -> None:
    """The file is whole, nothing is doubled or half there, and words and vectors agree with the chunks."""
    found = faults_in(store, stable=stable, embedded=embedded)
    if found:
        raise AssertionError("; ".join(found))


@dataclass(frozen=True)
class Held:
    """What the index holds of one page."""

    title: str
    content_hash: str
    markdown: str | None
    chunks: tuple[str, ...]


def index_of(store: Place, name: str = "docs") -> dict[str, Held]:
    """Everything that can be searched of a source, by address: the logical dump of the index."""
    found = rows(
        store,
        "select p.id, p.url, p.title, p.content_hash, d.markdown from pages p "
        "join sources s on s.id = p.source_id left join documents d on d.page_id = p.id "
        "where s.name = ? and p.content_hash is not null",
        name,
    )
    chunks: dict[int, list[str]] = defaultdict(list)
    for page, content in rows(store, "select page_id, content from chunks order by page_id, sort_order"):
        chunks[page].append(content)
    return {url: Held(title, key, text, tuple(chunks[page])) for page, url, title, key, text in found}
