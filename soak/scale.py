"""Measure a large PostgreSQL store: rows and bytes per page, pages per second, and search times.

Crawls the documentation of PostgreSQL once and copies it to many sites: the same pages on many hosts.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import asyncpg
from tests.postgres import mortal

from afresh.app import build
from afresh.config import load
from afresh.model.records import Run, RunMode
from afresh.store.open import open_store
from soak.claims import Site, side_by_side
from soak.copy import QUESTIONS, _afresh, _corpus

TABLES = ("pages", "documents", "chunks", "vectors", "links", "page_links", "page_crawls", "changes")
HOST = "'h' || (({id} + n * 7919) % {hosts}) || '.example.org'"
WEB = "'https://' || {host} || '/' || {id} || '-' || n"
NUMBERED = {  # by table: what differs from copy to copy; every other column stays
    "pages": {"id": "id + n * {far}", "url": "{web}", "queued_run": "{run}"},
    "documents": {"page_id": "page_id + n * {far}"},
    "chunks": {"id": "id + n * {far}", "page_id": "page_id + n * {far}", "text_hash": "md5(text_hash || n)"},
    "vectors": {"id": "id + n * {far}", "text_hash": "md5(text_hash || n)"},
    "links": {"id": "id + n * {far}", "url": "{web}"},
    "page_links": {"page_id": "page_id + n * {far}", "link_id": "link_id + n * {far}"},
    "page_crawls": {"id": "id + n * {far}", "page_id": "page_id + n * {far}", "url": "{web}"},
    "changes": {"id": "id + n * {far}", "page_id": "page_id + n * {far}", "url": "{web}"},
}
FAR = 1_000_000  # between the numbers of two copies
COLUMNS = """
select column_name from information_schema.columns where table_name = $1 and is_generated = 'NEVER'
"""
INDEXES = """
select indexdef from pg_indexes where tablename = $1 and indexdef not like '%UNIQUE%'
"""
QUEUE = """
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select id, $1, url, split_part(url, '/', 3), -depth, now(), now(), now() from pages where url like 'https:%'
"""
SIZES = """
select c.relname as name, c.reltuples::bigint as rows, pg_table_size(c.oid) as bytes,
    pg_indexes_size(c.oid) as indexes
from pg_class c where c.relname = any ($1) order by pg_total_relation_size(c.oid) desc
"""
INDEX_SIZES = """
select c.relname as name, pg_relation_size(c.oid) as bytes from pg_class c
join pg_index i on i.indexrelid = c.oid join pg_class t on t.oid = i.indrelid
where t.relname = any ($1) and pg_relation_size(c.oid) > $2 order by 2 desc
"""


async def multiply(server: asyncpg.Connection, table: str, copies: int, hosts: int, run: Run) -> None:
    """Copy each row of a table many times; create the indexes afterwards, as a restore does."""
    names = [str(row["column_name"]) for row in await server.fetch(COLUMNS, table)]
    given: dict[str, object] = {"far": FAR, "run": run.id, "hosts": hosts, "id": "id"}
    given["host"] = HOST.format(**given)
    given["web"] = WEB.format(**given)
    own = {name: text.format(**given) for name, text in NUMBERED[table].items()}
    if "source_id" in names:
        own["source_id"] = str(run.source_id)
    chosen = ", ".join(own.get(name, name) for name in names)
    indexes = [str(row["indexdef"]) for row in await server.fetch(INDEXES, table)]
    for text in indexes:
        await server.execute(f"drop index {text.split()[2]}")
    await server.execute(
        f"insert into {table} ({', '.join(names)}) select {chosen} from {table}, generate_series(1, {int(copies)}) as n"
    )
    for text in indexes:
        await server.execute(text)


async def grow(url: str, copies: int, vectors: int, hosts: int) -> Site:
    """Copy the one crawl of a store many times; all pages are due."""
    store, now = await open_store(url), datetime.now(UTC)
    source = await store.sources.add(
        name="many", version=None, kind="web", url="https://h0.example.org/", rules={}, policy={}, now=now
    )
    run, _ = await store.runs.start(source.id, RunMode.REFRESH, full=False, worker="lead", now=now)
    server = await asyncpg.connect(url)
    try:
        await server.execute("set session_replication_role = replica; set maintenance_work_mem = '512MB'")
        for table in TABLES:
            began = time.monotonic()
            await multiply(server, table, vectors if table == "vectors" else copies, hosts, run)
            print(f"{table:12} filled in {time.monotonic() - began:5.1f} s", flush=True)
        began = time.monotonic()
        await server.execute("vacuum analyze")
        await store.vectors.forget(datetime(2000, 1, 1, tzinfo=UTC))  # which makes their index
        print(f"vectors are indexed after {time.monotonic() - began:5.1f} s", flush=True)
    finally:
        await server.close()
        await store.close()
    return Site(url, run)


async def sizes(url: str, pages: int) -> Mapping[str, int]:
    """Print rows and bytes of each table per page; return the bytes of each table."""
    server = await asyncpg.connect(url)
    try:
        await server.execute("analyze")
        rows = await server.fetch(SIZES, list(TABLES))
        print("table           rows/page  bytes/page  index bytes/page")
        for row in rows:
            each = (row["rows"] / pages, row["bytes"] / pages, row["indexes"] / pages)
            print("{:14} {:10.2f} {:11,.0f} {:17,.0f}".format(row["name"], *each))
        for row in await server.fetch(INDEX_SIZES, list(TABLES), 100 * pages):
            print(f"   index {row['name']:30} {row['bytes'] / pages:9,.0f} bytes/page")
        return {row["name"]: row["bytes"] + row["indexes"] for row in rows}
    finally:
        await server.close()


async def ask(url: str) -> None:
    """Print how long keyword and semantic searches take."""
    kb = await build(load(None, {}, {"store.url": url}, Path.cwd()))
    try:
        for mode in ("text", "vector", "hybrid"):
            taken = []
            for question in (*QUESTIONS, *QUESTIONS, *QUESTIONS):
                began = time.perf_counter()
                await kb.search.search(question, mode=mode, limit=10)
                taken.append(1000 * (time.perf_counter() - began))
            print(f"a search by {mode:7} {median(taken):7.0f} ms, the slowest {max(taken):7.0f} ms", flush=True)
    finally:
        await kb.close()


async def look(site: Site, workers: int) -> None:
    """Queue every page and let workers check all of them, as in a run in which every page answers 304."""
    server = await asyncpg.connect(site.url)
    try:
        queued = int((await server.execute(QUEUE, site.run.id)).split()[-1])
        await server.execute("vacuum analyze page_crawls")
        before = await server.fetchval("select pg_total_relation_size('page_crawls')")
        wal = await server.fetchval("select pg_current_wal_lsn()")
        seconds, done, used = await asyncio.to_thread(side_by_side, site, workers)
        after = await server.fetchval("select pg_total_relation_size('page_crawls')")
        written = await server.fetchval("select pg_wal_lsn_diff(pg_current_wal_lsn(), $1)", wal)
    finally:
        await server.close()
    print(
        f"{workers} workers: {sum(done) / seconds:,.0f} unchanged pages/s, "
        f"{1e6 * used / sum(done):.0f} µs of a worker's processor a page, "
        f"{(after - before) / queued:.0f} bytes of history, {int(written) / queued:.0f} of WAL a look",
        flush=True,
    )


def main(arguments: Sequence[str]) -> int:
    """Fill a store and measure it."""
    parser = argparse.ArgumentParser("python -m soak scale", description=__doc__)
    parser.add_argument("--folder", type=Path, help="read this folder instead of the corpus")
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--vectors", type=int, default=20, help="number of copies that get vectors")
    parser.add_argument("--hosts", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="afresh-scale-") as folder, mortal() as (postgres, _):
        url = asyncio.run(postgres.emptied())
        _afresh("crawl", str(given.folder or _corpus(Path(folder))), "--name", "docs", "--store", url)
        asyncio.run(_measured(url, given))
    return 0


async def _measured(url: str, given: argparse.Namespace) -> None:
    server = await asyncpg.connect(url)
    one = await server.fetchval("select count(*) from pages")
    await server.close()
    copies = -(-given.pages // one)
    site = await grow(url, copies, min(given.vectors, copies), given.hosts)
    pages = (copies + 1) * one
    total = await sizes(url, pages)
    print(f"{pages:,} pages: {sum(total.values()) / 2**30:.2f} GiB")
    await ask(url)
    await look(site, given.workers)
