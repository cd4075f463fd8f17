"""Write a large source directly into a store: many pages with links, changes, runs and attempts."""

import asyncio
import re
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from afresh.store.open import open_store

RUNS = 300
DAYS = 400  # over which everything happened
MENU = 12  # pages that every page links to
ROOT = "https://docs.example.org/"
MODEL = "made-up"
N = "with recursive n (i) as (select cast({first} as bigint) union all select i + 1 from n where i < {last})"
AGO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%f', 'now', (-({0})) || ' seconds') || '000Z'",
    "postgres": "(now() - interval '1 second' * ({0}))",
}
DEPTH = "case when i = 1 then 0 when i <= 30 then 1 when i <= 900 then 2 when i <= 20000 then 3 else 4 + i % 3 end"
STATUS = (
    "case when i % 50 = 7 then 'error' when i % 70 = 9 then 'redirect' "
    "when i % 90 = 11 then 'deleted' else 'active' end"
)
URL = "'{root}' || case when i = 1 then '' else 'part' || (i % 400) || '/page-' || i || '.html' end"
PARENT = (
    "case when i <= 30 then 1 when i <= 900 then 2 + i % 29 when i <= 20000 then 31 + i % 870 else 901 + i % 19100 end"
)
LANGUAGE = "case when i % 20 = 3 then 'de' when i % 25 = 4 then 'fr' else 'en' end"
FILE = Path(__file__).with_suffix(".sql")  # by table: how it is filled


@dataclass(frozen=True, slots=True)
class Size:
    """Size of the source."""

    pages: int = 100_000
    attempts: int = 1_000_000
    changes: int = 300_000


def statements(size: Size, source: int, dialect: str) -> Mapping[str, str]:
    """Return the SQL statements that fill the tables."""
    last = {
        "runs": RUNS,
        "chunks": 2,
        "links": size.pages * 6 // 5,
        "page_crawls": size.attempts,
        "changes": size.changes,
        "hosts": 200,
    }
    ago = AGO[dialect].format
    day = 86_400
    words = {
        "source": source,
        "pages": size.pages,
        "most": size.pages - 420,
        "runs": RUNS,
        "menu": MENU,
        "status": STATUS,
        "depth": DEPTH,
        "parent": PARENT,
        "language": LANGUAGE,
        "url": URL.format(root=ROOT),
        "ago_run": ago(f"({RUNS} - i) * {day}"),
        "ago_look": ago(f"i % {3 * day}"),
        "ago_change": ago(f"{3 * day} + (i * 7919) % {DAYS * day}"),
        "ago_when": ago(f"case when i <= {size.pages} then {DAYS * day} else (i * 7919) % {DAYS * day} end"),
        "ahead": ago(f"{day} - (i * 31) % {3 * day}"),
        "vector": "x'0000003C'" if dialect == "sqlite" else "'[0,1]'::halfvec",
    }
    parts = re.split(r"^-- (.+)$", FILE.read_text(), flags=re.MULTILINE)
    return {
        name: text.format(**words, n=N.format(first=1, last=last.get(name, size.pages)))
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


async def fill(url: str, size: Size) -> int:
    """Create the source in an empty store; return its id."""
    store, now = await open_store(url), datetime.now(UTC)
    source = await store.sources.add(name="large", version=None, kind="web", url=ROOT, rules={}, policy={}, now=now)
    await store.vectors.keep(MODEL, {"none": b"\0\0\0\x3c"}, now)
    await store.close()
    dialect = "sqlite" if url.startswith("sqlite") else "postgres"
    steps = statements(size, source.id, dialect)
    if dialect == "sqlite":
        await asyncio.to_thread(_into_file, url.removeprefix("sqlite:///"), steps)
    else:
        await _into_server(url, steps)
    return int(source.id)


def _into_file(file: str, steps: Mapping[str, str]) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("pragma cache_size = -500000")
        for name, text in steps.items():
            began = time.monotonic()
            connection.execute(text)
            print(f"{name:12} filled in {time.monotonic() - began:5.1f} s", flush=True)


async def _into_server(url: str, steps: Mapping[str, str]) -> None:
    server = await asyncpg.connect(url)
    try:
        await server.execute("set session_replication_role = replica; set maintenance_work_mem = '512MB'")
        for name, text in steps.items():
            began = time.monotonic()
            await server.execute(text)
            print(f"{name:12} filled in {time.monotonic() - began:5.1f} s", flush=True)
        for table in ("runs", "pages", "chunks", "links", "page_crawls"):
            await server.execute(
                f"select setval(pg_get_serial_sequence('{table}', 'id'), (select max(id) from {table}))"
            )
        await server.execute("vacuum analyze")
    finally:
        await server.close()
