"""A large source, written straight into a store: many pages, their links, changes, runs and attempts."""

import asyncio
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

import asyncpg

from afresh.store.open import open_store

RUNS = 300
DAYS = 400  # over which everything happened
MENU = 12  # pages that every page links to
ROOT = "https://docs.example.org/"
MODEL = "made-up"
N = "with recursive n (i) as (select {first} union all select i + 1 from n where i < {last})"
AGO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%f', 'now', '-' || ({0}) || ' seconds') || '000Z'",
    "postgres": "(now() - interval '1 second' * ({0}))",
}
DEPTH = "case when i = 1 then 0 when i <= 30 then 1 when i <= 900 then 2 when i <= 20000 then 3 else 4 + i % 3 end"
STATUS = "case when i % 50 = 7 then 'error' when i % 70 = 9 then 'redirect' when i % 90 = 11 then 'deleted' else 'active' end"
URL = "'{root}' || case when i = 1 then '' else 'part' || (i % 400) || '/page-' || i || '.html' end"
PARENT = "case when i <= 30 then 1 when i <= 900 then 2 + i % 29 when i <= 20000 then 31 + i % 870 else 901 + i % 19100 end"
LANGUAGE = "case when i % 20 = 3 then 'de' when i % 25 = 4 then 'fr' else 'en' end"
STEPS = {  # by table: how it is filled
    "runs": """
insert into runs (source_id, mode, state, queued, known, counts, started_at, finished_at)
{n} select {source}, 'refresh', 'completed', {pages}, {pages},
    '{{"checked": {pages}, "not_modified": {most}, "changed": 400, "failed": 20, "bytes": 40000000, '
    || '"chunks_embedded": 900, "worked_ms": 600000}}',
    {ago_run}, {ago_run}
from n""",
    "pages": """
insert into pages (
    id, source_id, url, status, title, depth, language, etag, content_type, content_hash, recipe, chunker, doubt,
    failures, crawl_time, last_seen, checked_at, changed_at, created_at, updated_at, change_count, span_seconds
)
{n} select i, {source}, {url}, {status}, 'Page ' || i || ' about things', {depth}, {language}, '"' || i || '"',
    'text/html', case when i % 70 = 9 or i % 90 = 11 then null else 'hash' || i end, 'r1', 'c1',
    case when i % 1000 = 5 then 'it lost nearly all of its text' end, case when i % 50 = 7 then 2 else 0 end,
    {ago_look}, {ago_look}, {ago_look}, {ago_change}, {ago_change}, {ago_look}, i % 9, 86400.0 * (i % 200)
from n""",
    "documents": """
insert into documents (page_id, markdown, length)
select id, '# ' || title || replace('0123456789', '0', '

A paragraph with some words in it, as pages of documentation have them. '), 600 from pages where status <> 'deleted'""",
    "chunks": """
insert into chunks (page_id, sort_order, title, heading, content, metadata, config, text_hash, created_at)
{n} select p.id, i, p.title, 'Part ' || i, 'A paragraph with some words in it.',
    '{{"level": 1, "path": [], "types": []}}', 'english', 'text' || p.id || '-' || i, p.created_at
from pages p, n where p.status = 'active'""",
    "vectors": """
insert into vectors (model_id, text_hash, vector, used_at)
select 1, text_hash, {vector}, created_at from chunks where id % 100 <> 1""",
    "links": """
insert into links (id, source_id, url, admitted, score)
{n} select i, {source}, case when i <= {pages} then {url} else 'https://other.example.com/' || i end,
    case when i <= {pages} then 1 else 0 end, case when i % 5 = 0 then (i % 97) / 97.0 end
from n""",
    "page_links": """
insert into page_links (page_id, link_id, position, text)
{n} select i, 1, 0, 'Home' from n where i > 1
union all select i, m.j, m.j, 'Menu ' || m.j from n, (select id as j from links where id > 1 and id <= {menu}) m where i <> m.j
union all select {parent}, i, 100 + i, 'Page ' || i from n where i > {menu}
union all select i, {pages} + 1 + i % 20000, 99, 'elsewhere' from n where true
on conflict do nothing""",
    "page_crawls": """
insert into page_crawls (
    page_id, run_id, url, domain, priority, scheduled_for, completed_at, outcome, status_code, reason, created_at, updated_at
)
{n} select p.id, 1 + i % {runs}, p.url, 'docs.example.org', -p.depth, p.checked_at, p.checked_at,
    case when i % 40 = 3 then 'failed' when i % 25 = 1 then 'success' else 'not_modified' end,
    case when i % 40 = 3 then 503 when i % 25 = 1 then 200 else 304 end, 'it said so', p.created_at, p.checked_at
from n join pages p on p.id = 1 + i % {pages}""",
    "open rows": """
insert into page_crawls (page_id, url, domain, priority, scheduled_for, created_at, updated_at)
{n} select i, {url}, 'docs.example.org', -3, {ahead}, {ago_look}, {ago_look} from n""",
    "changes": """
insert into changes (source_id, page_id, url, kind, run_id, at, new_hash, diff)
{n} select {source}, 1 + i % {pages}, 'https://docs.example.org/page-' || (1 + i % {pages}) || '.html',
    case when i <= {pages} then 'new' when i % 30 = 1 then 'deleted' else 'changed' end, 1 + i % {runs},
    {ago_when}, 'hash', '- old
+ new' from n""",
    "hosts": """
insert into hosts (domain, next_allowed_at)
{n} select 'h' || i || '.example.org', {ahead} from n""",
}


@dataclass(frozen=True, slots=True)
class Size:
    """How large the source is."""

    pages: int = 100_000
    attempts: int = 1_000_000
    changes: int = 300_000


def statements(size: Size, source: int, dialect: str) -> Mapping[str, str]:
    """The SQL that fills each table."""
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
    return {
        name: text.format(**words, n=N.format(first=1, last=last.get(name, size.pages)))
        for name, text in STEPS.items()
    }


async def fill(url: str, size: Size) -> int:
    """Make the source in an empty store; its number."""
    store, now = await open_store(url), datetime.now(UTC)
    source = await store.add_source(
        name="large", version=None, kind="web", url=ROOT, rules={}, policy={}, now=now
    )
    await store.keep_vectors(MODEL, {"none": b"\0\0\0\x3c"}, now)
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
