-- prunable_pages
select p.id, p.url, exists (select 1 from page_links o where o.page_id = p.id) as leads_on
from pages p
where p.source_id = :source and p.status in ('deleted', 'redirect') and p.content_hash is null
    and coalesce(p.changed_at, p.created_at) <= :before
    and p.url <> (select s.url from sources s where s.id = p.source_id)
    and (p.status = 'deleted' or not exists (
        select 1 from pages t where t.source_id = p.source_id and t.url = p.moved_to and t.status <> 'deleted'
    ))
    and not (p.status = 'deleted' and p.gone_count = 0 and exists (select 1 from page_links o where o.page_id = p.id) and (
        p.listed = 1 or exists (
            select 1 from links l join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
            where l.source_id = p.source_id and l.url = p.url and e.follow = 1 and f.id <> p.id and f.status <> 'deleted'
        )
    ))
    and not exists (
        select 1 from page_crawls c
        where c.page_id = p.id and c.outcome is null and (c.run_id is not null or c.locked_at is not null)
    )
    and coalesce(p.queued_run, 0) not in (
        select r.id from runs r where r.source_id = p.source_id and r.state in ('queued', 'running', 'cancelled')
    )
    and not exists (
        select 1 from copies k where k.page_id = p.id
            and (k.remote_id is not null or k.putting = 1 or k.former <> '[]' or k.leftovers <> '[]')
    )
order by p.id
limit :limit

-- tie_attempts_to_runs
update page_crawls
set run_id = coalesce(
    (select max(c.run_id) from changes c where c.page_id = page_crawls.page_id),
    (select max(r.id) from runs r where r.source_id = :source)
)
where page_id in {list pages} and run_id is null

-- drop_copies_of_pages
delete from copies where page_id in {list pages}

-- delete_pages
delete from pages where id in {list pages}

-- open_frontier_to
update sources set frontier_open = 1
where id = :source and exists (
    select 1 from links l join page_links e on e.link_id = l.id
    where l.source_id = :source and l.admitted = 1 and l.url in {list urls} and e.follow = 1
)

-- remember_page_number
insert into page_numbers (id, last) select 1, max(p.id) from pages p where p.id in {list pages} having max(p.id) is not null
on conflict (id) do update
set last = case when excluded.last > page_numbers.last then excluded.last else page_numbers.last end

-- next_attempts
select max(s.id) as last, min(s.created_at) as oldest
from (select id, created_at from page_crawls where id > :after order by id limit :limit) s

-- prune_attempts
delete from page_crawls
where id > :after and id <= :top and completed_at <= :before and outcome is not null
    and id < (select max(n.id) from page_crawls n)
    and (run_id is null or not exists (
        select 1 from runs r where r.id = page_crawls.run_id and r.state in ('queued', 'running', 'cancelled', 'needs_confirmation')
    ))
    and (page_id is null or exists (
        select 1 from page_crawls n
        where n.page_id = page_crawls.page_id and n.id > page_crawls.id and n.outcome is not null and n.outcome <> 'cancelled'
    ))
    and (unchanged is null or not exists (select 1 from runs k where k.id = page_crawls.run_id) or exists (
        select 1 from runs k join runs m on m.source_id = k.source_id join page_crawls n on n.run_id = m.id
        where k.id = page_crawls.run_id and n.unchanged is not null and n.id > page_crawls.id
    ))

-- count_prunable_attempts
select count(*) as number from page_crawls where completed_at <= :before and outcome is not null
    and id < (select max(n.id) from page_crawls n)
    and (run_id is null or not exists (
        select 1 from runs r where r.id = page_crawls.run_id and r.state in ('queued', 'running', 'cancelled', 'needs_confirmation')
    ))
    and (page_id is null or exists (
        select 1 from page_crawls n
        where n.page_id = page_crawls.page_id and n.id > page_crawls.id and n.outcome is not null and n.outcome <> 'cancelled'
    ))
    and (unchanged is null or not exists (select 1 from runs k where k.id = page_crawls.run_id) or exists (
        select 1 from runs k join runs m on m.source_id = k.source_id join page_crawls n on n.run_id = m.id
        where k.id = page_crawls.run_id and n.unchanged is not null and n.id > page_crawls.id
    ))

-- prune_documents
delete from sync_documents where (run_id, copy_id) in (
    select d.run_id, d.copy_id from sync_documents d join runs r on r.id = d.run_id
    where d.at <= :before and r.state not in ('queued', 'running', 'cancelled', 'needs_confirmation') and exists (
        select 1 from runs m join sync_documents n on n.run_id = m.id
        where m.source_id = r.source_id and m.id > r.id and n.sink = d.sink
    )
    order by d.run_id, d.copy_id limit :limit
)

-- count_prunable_documents
select count(*) as number from sync_documents d join runs r on r.id = d.run_id
where d.at <= :before and r.state not in ('queued', 'running', 'cancelled', 'needs_confirmation') and exists (
    select 1 from runs m join sync_documents n on n.run_id = m.id
    where m.source_id = r.source_id and m.id > r.id and n.sink = d.sink
)

-- prune_changes
delete from changes where id in (
    select c.id from changes c where c.at <= :before and c.id < (select max(n.id) from changes n)
    and not exists (
        select 1 from runs r where r.id = c.run_id and r.state in ('queued', 'running', 'cancelled', 'needs_confirmation')
    )
    and not exists (select 1 from outbox o where o.run_id = c.run_id and o.state = 'waiting') order by c.id limit :limit
)

-- count_prunable_changes
select count(*) as number from changes c where c.at <= :before and c.id < (select max(n.id) from changes n)
    and not exists (
        select 1 from runs r where r.id = c.run_id and r.state in ('queued', 'running', 'cancelled', 'needs_confirmation')
    )
    and not exists (select 1 from outbox o where o.run_id = c.run_id and o.state = 'waiting')

-- prune_outbox
delete from outbox where id in (
    select o.id from outbox o where o.ended_at <= :before and o.state <> 'waiting' order by o.id limit :limit
)

-- count_prunable_outbox
select count(*) as number from outbox o where o.ended_at <= :before and o.state <> 'waiting'

-- prune_former_texts
update documents set former = null, former_title = null, former_at = null where page_id in (
    select d.page_id from documents d where d.former is not null and d.former_at < :before limit :limit
)

-- count_prunable_former_texts
select count(*) as number from documents d where d.former is not null and d.former_at < :before

-- reset_missing
update pages set missing_count = 0
where source_id = :source and missing_count > 0 and doomed_by is null and id not in {list pages}

-- record_missing
update pages set missing_count = :missing_count, doomed_by = :doomed_by, updated_at = :now where id = :page

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

-- cancel_open
update page_crawls
set outcome = 'cancelled', completed_at = :now, updated_at = :now, locked_at = null, locked_by = null,
    reason = :reason
where outcome is null and page_id in {list pages}

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
