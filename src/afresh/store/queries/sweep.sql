-- set_listed
update pages set listed = 1 where source_id = :source and listed = 0 and url in {list urls}

-- clear_listed
update pages set listed = 0 where source_id = :source and listed = 1 and url not in {list urls}

-- listed_pages
select count(*) as number from pages p join sources s on s.id = p.source_id
where p.source_id = :source and p.listed = 1 and p.url <> s.url

-- unreached
with recursive target (link_id, page_id) as materialized (
    select l.id, p.id from links l join pages p on p.source_id = l.source_id and p.url = l.url
    where l.source_id = :source and l.admitted = 1 and p.depth <= :max_depth
),
reached (id) as (
    select id from pages where source_id = :source and (url = :root or listed = 1)
    union
    select t.page_id from reached r
    join pages f on f.id = r.id
        and (f.doomed_by is null or f.moved_to is not null or (f.gone_count = 0 and f.missing_count = 0))
    join page_links e on e.page_id = r.id and e.follow = 1
    join target t on t.link_id = e.link_id
)
select * from pages
where source_id = :source and content_hash is not null and doomed_by is null
    and id not in (select id from reached)

-- missing_pages
select * from pages
where source_id = :source and content_hash is not null and doomed_by is null and missing_count > 0

-- reset_missing
update pages set missing_count = 0
where source_id = :source and missing_count > 0 and doomed_by is null and id not in {list pages}

-- record_missing
update pages set missing_count = :missing_count, doomed_by = :doomed_by, updated_at = :now where id = :page

-- doomed
select * from pages where source_id = :source and doomed_by is not null and content_hash is not null

-- moves
select url, status, moved_to from pages
where source_id = :source and (
    moved_to is not null or url in (select moved_to from pages where source_id = :source)
)

-- live_count
select count(*) as live from pages where source_id = :source and content_hash is not null

-- drop_page
update pages
set status = :status, content_hash = null, links_hash = null, recipe = null, etag = null, last_modified = null,
    size = null, mtime_ns = null, validators_url = null, doomed_by = null, missing_count = 0,
    crashes = 0, doubt = null, doubt_hash = null, doubt_run = null, refused_hash = null, changed_at = :now, updated_at = :now
where id = :page

-- drop_documents
delete from documents where page_id in {list pages}

-- drop_chunks
delete from chunks where page_id in {list pages}

-- drop_page_links
delete from page_links where page_id in {list pages}

-- drop_lonely_links
delete from links where source_id = :source and not exists (select 1 from page_links e where e.link_id = links.id)

-- root_page
select * from pages where source_id = :source and url = :root

-- latest_attempt
select * from page_crawls where page_id = :page and outcome is not null and (outcome <> 'cancelled' or reason like 'no link led here%')
order by id desc limit 1

-- links_of_source
select l.id, l.url, l.admitted, case when l.admitted = 0 then (
    select f.url from page_links e join pages f on f.id = e.page_id
    where e.link_id = l.id and e.follow = 1 order by f.depth, f.id limit 1
) end as found_on
from links l where l.source_id = :source
order by l.id

-- addresses
select url, listed from pages where source_id = :source
union all
select l.url, 0 from links l
where l.source_id = :source and l.admitted = 1
    and not exists (select 1 from pages p where p.source_id = l.source_id and p.url = l.url)
    and exists (select 1 from page_links e where e.link_id = l.id and e.follow = 1)

-- left_out
select l.url from links l
where l.source_id = :source and l.admitted = 0
    and exists (select 1 from page_links e where e.link_id = l.id and e.follow = 1)

-- readmit_link
update links set admitted = :admitted where id = :link

-- cancel_open
update page_crawls
set outcome = 'cancelled', completed_at = :now, updated_at = :now, locked_at = null, locked_by = null,
    reason = :reason
where outcome is null and page_id in {list pages}

-- moves_of_source
select url, moved_to from pages where source_id = :source and moved_to is not null

-- move_targets
select p.*, (
    select max(r.started_at) from changes c join runs r on r.id = c.run_id
    where c.source_id = p.source_id and c.url = p.url and c.kind = 'new'
) as found_at
from pages p where p.source_id = :source and p.url in {list urls}

-- former_roots
select url, validators_url from pages
where source_id = :source and depth = 0 and (moved_to is not null or url = :root)

-- move_source
update sources set url = :url, mark = null, updated_at = :now where id = :source

-- rows_of_pages
select * from pages where id in {list pages}

-- open_rows_of_pages
select id, page_id from page_crawls where page_id in {list pages} and outcome is null

-- unbind_crawls
update page_crawls set page_id = null where id in {list crawls}

-- bind_crawl
update page_crawls set page_id = r.page from {rows crawl page} r where page_crawls.id = r.crawl

-- hand_over_crawls
update page_crawls set page_id = r.page from {rows target page} r
where page_crawls.page_id = r.target and page_crawls.outcome is not null

-- leave_moved_crawls
update page_crawls set page_id = r.target from {rows target page url} r
where page_crawls.page_id = r.page and page_crawls.url = r.url and page_crawls.outcome = 'moved'

-- hand_over_document
update documents set page_id = r.page from {rows target page} r where documents.page_id = r.target

-- hand_over_kb
update kb_records set page_id = r.page from {rows target page} r where kb_records.page_id = r.target

-- untell_new
delete from changes where kind = 'new' and page_id in {list pages}

-- hand_over_changes
update changes set page_id = r.page from {rows target page} r where changes.page_id = r.target

-- edges_of_pages
select page_id, link_id, position, text, follow from page_links where page_id in {list pages}

-- copies_bound_to
select id, page_id from copies where page_id in {list pages}

-- unbind_copies
update copies set page_id = null where page_id in {list pages}

-- bind_copy
update copies set page_id = r.page from {rows copy page} r where copies.id = r.copy

-- rename_page
update pages set url = r.url from {rows page url} r where pages.id = r.page

-- place_page
update pages set url = r.url, depth = r.depth, listed = r.listed, queued_run = r.run, missing_count = r.missing_count
from {rows page url depth listed run missing_count} r where pages.id = r.page
