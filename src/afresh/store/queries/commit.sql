-- held_crawls
select id from page_crawls where id in {list crawls} and locked_by = :worker and outcome is null

-- depths_of
select id, depth from pages where id in {list pages}

-- stamp_crawl
update page_crawls
set outcome = :outcome, completed_at = :now, status_code = :status_code, error_message = :error_message,
    reason = :reason, locked_at = null, locked_by = null, updated_at = :now
where id = :crawl

-- next_crawl
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
values (:page, :run, :url, :domain, :priority, :at, :now, :now)
on conflict (page_id) where outcome is null do nothing

-- update_page
update pages
set status = :status, title = :title, language = :language, etag = :etag, last_modified = :last_modified,
    size = :size, mtime_ns = :mtime_ns, validators_url = :validators_url, content_type = :content_type,
    content_hash = :content_hash, links_hash = :links_hash, recipe = :recipe, failures = :failures,
    gone_count = :gone_count, doomed_by = :doomed_by, moved_to = :moved_to, crawl_time = :crawl_time,
    last_seen = :last_seen, last_scraped = :last_scraped, checked_at = :checked_at, changed_at = :changed_at,
    updated_at = :now
where id = :page

-- check_page
update pages
set failures = 0, gone_count = 0, doomed_by = null, crawl_time = :crawl_time, last_seen = :crawl_time,
    checked_at = :now
where id = :page

-- upsert_document
insert into documents (page_id, markdown) values (:page, :markdown)
on conflict (page_id) do update set markdown = excluded.markdown, summary = null

-- chunks_of
select id, page_id, sort_order, title, config, whole, text_hash, embedding from chunks where page_id in {list pages}

-- retitle_chunks
update chunks set title = :title where page_id = :page

-- delete_chunks
delete from chunks where id in {list chunks}

-- move_chunk
update chunks set sort_order = :sort_order where id = :chunk

-- insert_chunk
insert into chunks (
    page_id, sort_order, title, heading, content, metadata, config, whole, text_hash, embedding, created_at
)
values (:page, :sort_order, :title, :heading, :content, :metadata, :config, :whole, :text_hash, :embedding, :now)

-- upsert_link
insert into links (source_id, url, admitted, crawl_time) values (:source, :url, :admitted, :crawl_time)
on conflict (source_id, url) do update set admitted = excluded.admitted where excluded.admitted > links.admitted

-- delete_page_links
delete from page_links where page_id in {list pages}

-- insert_page_link
insert into page_links (page_id, link_id, position, text, follow)
values (:page, :link, :position, :text, :follow)
on conflict (page_id, link_id) do nothing

-- link_ids
select id, url from links where source_id = :source and url in {list urls}

-- insert_change
insert into changes (source_id, page_id, url, kind, run_id, at, old_hash, new_hash, diff, moved_to)
values (:source, :page, :url, :kind, :run, :now, :old_hash, :new_hash, :diff, :moved_to)

