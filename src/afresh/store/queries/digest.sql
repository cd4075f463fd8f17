-- kb_pages
select p.url, p.depth, p.size, p.mtime_ns, p.etag, p.last_modified, p.failures,
    coalesce(c.scheduled_for, p.checked_at) as next_at,
    k.text_hash, k.summary, k.indexed_at, k.fetched_at, k.fetch_status
from pages p
left join kb_records k on k.page_id = p.id
left join page_crawls c on c.page_id = p.id and c.outcome is null
where p.source_id = :source and (p.status not in ('deleted', 'redirect') or p.listed = 1)

-- kb_record
select text_hash, summary, indexed_at, fetched_at, fetch_status from kb_records where page_id = :page

-- record_kb
insert into kb_records (page_id, text_hash, summary, indexed_at, fetched_at, fetch_status)
values (:page, :text_hash, :summary, :indexed_at, :fetched_at, :status)
on conflict (page_id) do update
set text_hash = coalesce(excluded.text_hash, kb_records.text_hash),
    summary = coalesce(excluded.summary, kb_records.summary),
    indexed_at = coalesce(excluded.indexed_at, kb_records.indexed_at),
    fetched_at = coalesce(excluded.fetched_at, kb_records.fetched_at),
    fetch_status = coalesce(excluded.fetch_status, kb_records.fetch_status)

-- forget_kb
delete from kb_records where page_id in {list pages}

-- impose_page
update pages
set validators_url = case
        when coalesce(etag, '') = coalesce(:etag, '') and coalesce(last_modified, '') = coalesce(:last_modified, '')
        then validators_url end,
    etag = :etag, last_modified = :last_modified, size = :size, mtime_ns = :mtime_ns, failures = :failures,
    last_seen = coalesce(:fetched_at, last_seen), updated_at = :now
where source_id = :source and url = :url

-- impose_record
insert into kb_records (page_id, text_hash, summary, indexed_at, fetched_at, fetch_status)
select id, :text_hash, :summary, :indexed_at, :fetched_at, :status from pages
where source_id = :source and url = :url
on conflict (page_id) do update
set text_hash = excluded.text_hash, summary = excluded.summary, indexed_at = excluded.indexed_at,
    fetched_at = excluded.fetched_at, fetch_status = excluded.fetch_status

-- impose_look
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select id, null, url, :domain, -depth, :at, :now, :now from pages where source_id = :source and url = :url
on conflict (page_id) where outcome is null do update
set scheduled_for = excluded.scheduled_for, updated_at = excluded.updated_at

-- recorded_cache
select path, digest from kb_caches

-- forget_caches
delete from kb_caches

-- record_cache
insert into kb_caches (path, digest) values (:path, :digest)
