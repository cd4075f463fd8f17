-- held_crawls
select id from page_crawls where id in {list crawls} and locked_by = :worker and outcome is null {for update}

-- depths_of
select id, depth from pages where id in {list pages}

-- stamp_crawl
update page_crawls
set outcome = r.outcome, completed_at = r.now, status_code = r.status_code, error_message = r.error_message,
    reason = r.reason, locked_at = null, locked_by = null, updated_at = r.now
from {rows crawl outcome status_code error_message reason now} r
where page_crawls.id = r.crawl

-- next_crawl
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select p.id, r.run, p.url, r.domain, -p.depth, r.at, r.now, r.now
from {rows page run domain at now} r join pages p on p.id = r.page
where true
on conflict (page_id) where outcome is null do nothing

-- update_page
update pages
set status = r.status, title = r.title, language = r.language, etag = r.etag, last_modified = r.last_modified,
    size = r.size, mtime_ns = r.mtime_ns, validators_url = r.validators_url, content_type = r.content_type,
    content_hash = r.content_hash, links_hash = r.links_hash, links_left_out = r.links_left_out, recipe = r.recipe, chunker = r.chunker, failures = r.failures,
    gone_count = r.gone_count, doomed_by = r.doomed_by, moved_to = r.moved_to, crawl_time = r.crawl_time,
    last_seen = r.last_seen, last_scraped = r.last_scraped, checked_at = r.checked_at, changed_at = r.changed_at,
    observed_at = r.observed_at, change_count = r.change_count, quiet_seconds = r.quiet_seconds, span_seconds = r.span_seconds,
    crashes = r.crashes, doubt = r.doubt, doubt_hash = r.doubt_hash, doubt_run = r.doubt_run, refused_hash = r.refused_hash, updated_at = r.now
from {rows status title language etag last_modified size mtime_ns validators_url content_type content_hash links_hash links_left_out recipe chunker failures gone_count doomed_by crashes doubt doubt_hash doubt_run refused_hash moved_to crawl_time last_seen last_scraped checked_at changed_at observed_at change_count quiet_seconds span_seconds now page} r
where pages.id = r.page

-- check_page
update pages
set failures = 0, gone_count = 0, doomed_by = null, crawl_time = r.crawl_time, last_seen = r.crawl_time,
    checked_at = r.checked_at, observed_at = r.observed_at, quiet_seconds = r.quiet_seconds
from {rows page crawl_time checked_at observed_at quiet_seconds} r
where pages.id = r.page

-- forget_diffs
update changes set diff = null where page_id in {list pages} and diff is not null

-- chunks_of
select id, page_id, sort_order, title, config, whole, terms is not null as analysed, {text content} as content, text_hash
from chunks where page_id in {list pages}

-- terms_of
select id, page_id, config, terms from chunks where page_id in {list pages}

-- delete_chunks
delete from chunks where id in {list chunks}

-- move_chunk
update chunks set sort_order = r.sort_order from {rows chunk sort_order} r where chunks.id = r.chunk

-- outdated_pages
select p.*, {text d.markdown} as markdown from pages p join documents d on d.page_id = p.id
where p.id > :after and p.content_hash is not null and d.markdown is not null
    and coalesce(p.chunker, '') <> :chunker and (:source is null or p.source_id = :source)
order by p.id limit :limit

-- count_outdated
select count(*) as pages, coalesce(sum(case when d.markdown is null then 1 else 0 end), 0) as without_text
from pages p join documents d on d.page_id = p.id
where p.content_hash is not null and coalesce(p.chunker, '') <> :chunker
    and (:source is null or p.source_id = :source)

-- hashes_of
select id, content_hash from pages where id in {list pages} {for update}

-- restore_document
update documents
set markdown = :markdown, sketch = :sketch, length = :length, former = null, former_title = null, former_at = null,
    summary = null
where page_id = :page

-- restore_page
update pages
set title = :title, content_hash = :content_hash, refused_hash = :refused_hash, doubt = :doubt, doubt_hash = null,
    doubt_run = null, etag = null, last_modified = null, size = null, mtime_ns = null, validators_url = null,
    chunker = :chunker, changed_at = :now, updated_at = :now
where id = :page

-- mark_recut
update pages set chunker = :chunker, updated_at = :now where id in {list pages}

-- leave_vectors
update vectors set used_at = :now
where model_id in (select id from models) and text_hash in (select text_hash from chunks where id in {list chunks})
