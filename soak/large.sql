-- runs
insert into runs (source_id, mode, state, queued, known, counts, started_at, finished_at)
{n} select {source}, 'refresh', 'completed', {pages}, {pages},
    '{{"checked": {pages}, "not_modified": {most}, "changed": 400, "failed": 20, "bytes": 40000000, '
    || '"chunks_embedded": 900, "worked_ms": 600000}}',
    {ago_run}, {ago_run}
from n

-- pages
insert into pages (
    id, source_id, url, status, title, depth, language, etag, content_type, content_hash, recipe, chunker, doubt,
    failures, crawl_time, last_seen, checked_at, changed_at, created_at, updated_at, change_count, span_seconds
)
{n} select i, {source}, {url}, {status}, 'Page ' || i || ' about things', {depth}, {language}, '"' || i || '"',
    'text/html', case when i % 70 = 9 or i % 90 = 11 then null else 'hash' || i end, 'r1', 'c1',
    case when i % 1000 = 5 then 'it lost nearly all of its text' end, case when i % 50 = 7 then 2 else 0 end,
    {ago_look}, {ago_look}, {ago_look}, {ago_change}, {ago_change}, {ago_look}, i % 9, 86400.0 * (i % 200)
from n

-- documents
insert into documents (page_id, markdown, length)
select id, '# ' || title || replace('0123456789', '0', '

A paragraph with some words in it, as pages of documentation have them. '), 600 from pages where status <> 'deleted'

-- chunks
insert into chunks (page_id, sort_order, title, heading, content, metadata, config, text_hash, created_at)
{n} select p.id, i, p.title, 'Part ' || i, 'A paragraph with some words in it.',
    '{{"level": 1, "path": [], "types": []}}', 'english', 'text' || p.id || '-' || i, p.created_at
from pages p, n where p.status = 'active'

-- vectors
insert into vectors (model_id, text_hash, vector, used_at)
select 1, text_hash, {vector}, created_at from chunks where id % 100 <> 1

-- links
insert into links (id, source_id, url, admitted, score)
{n} select i, {source}, case when i <= {pages} then {url} else 'https://other.example.com/' || i end,
    case when i <= {pages} then 1 else 0 end, case when i % 5 = 0 then (i % 97) / 97.0 end
from n

-- page_links
insert into page_links (page_id, link_id, position, text)
{n} select i, 1, 0, 'Home' from n where i > 1
union all select i, m.j, m.j, 'Menu ' || m.j from n, (select id as j from links where id > 1 and id <= {menu}) m where i <> m.j
union all select {parent}, i, 100 + i, 'Page ' || i from n where i > {menu}
union all select i, {pages} + 1 + i % 20000, 99, 'elsewhere' from n where true
on conflict do nothing

-- page_crawls
insert into page_crawls (
    page_id, run_id, url, domain, priority, scheduled_for, completed_at, outcome, status_code, reason, created_at, updated_at
)
{n} select p.id, 1 + i % {runs}, p.url, 'docs.example.org', -p.depth, p.checked_at, p.checked_at,
    case when i % 40 = 3 then 'failed' when i % 25 = 1 then 'success' else 'not_modified' end,
    case when i % 40 = 3 then 503 when i % 25 = 1 then 200 else 304 end, 'it said so', p.created_at, p.checked_at
from n join pages p on p.id = 1 + i % {pages}

-- open rows
insert into page_crawls (page_id, url, domain, priority, scheduled_for, created_at, updated_at)
{n} select i, {url}, 'docs.example.org', -3, {ahead}, {ago_look}, {ago_look} from n

-- changes
insert into changes (source_id, page_id, url, kind, run_id, at, new_hash, diff)
{n} select {source}, 1 + i % {pages}, 'https://docs.example.org/page-' || (1 + i % {pages}) || '.html',
    case when i <= {pages} then 'new' when i % 30 = 1 then 'deleted' else 'changed' end, 1 + i % {runs},
    {ago_when}, 'hash', '- old
+ new' from n

-- hosts
insert into hosts (domain, next_allowed_at)
{n} select 'h' || i || '.example.org', {ahead} from n

-- copies
insert into copies (sink, source_id, source, page_id, url, state, wanted_hash, held_hash, remote_id, error, created_at, updated_at)
select 'mirror', {source}, 'large', id, url, case when id % 30 = 1 then 'error' when id % 40 = 2 then 'processing' else 'active' end,
    content_hash, content_hash, 'doc-' || id, case when id % 30 = 1 then 'refused' end, checked_at, checked_at
from pages where content_hash is not null and id % 500 <> 3
