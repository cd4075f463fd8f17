-- open_row
select id, run_id, locked_by from page_crawls where page_id = :page and outcome is null {for update}

-- postpone
update page_crawls set scheduled_for = :at, updated_at = :now where id = :crawl

-- page_records
select p.*, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id
where p.id > :after and {of sources}
    and (:status is null or p.status = :status)
    and (:everything = 1 or :status is not null or p.status not in ('deleted', 'redirect'))
    and (:doubtful = 0 or p.doubt is not null)
    and (:language is null or p.language = :language)
    and (:depth is null or p.depth = :depth)
    and (:text is null or {holds p.url} or {holds p.title})
order by p.id
limit :limit

-- page_record
select p.*, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id where p.id = :page

-- pages
select p.*, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id
where p.source_id = :source
    and (:status is null or p.status = :status)
    and (:everything = 1 or :status is not null or p.status not in ('deleted', 'redirect'))
    and (:doubtful = 0 or p.doubt is not null)
    and (:language is null or p.language = :language)
    and (:depth is null or p.depth = :depth)
    and (:text is null or {holds p.url} or {holds p.title})
order by p.depth, p.url
limit :limit

-- pages_by_url
select p.*, s.name as source_name, s.version as source_version, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id
where p.url = :url and (:source is null or p.source_id = :source)
order by (p.status = 'active') desc, p.id

-- sketches_like
select d.sketch from documents d join pages p on p.id = d.page_id
where substr(d.sketch, 1, 8) = :first and p.source_id = :source and p.id <> :page
    and p.changed_at < (select started_at from runs where id = :run)
limit 50

-- doubted_alike
select count(*) as pages from pages
where source_id = :source and doubt is not null and doubt_hash = :content_hash and id <> :page

-- held_document
select {text markdown} as markdown, sketch, length, {text former} as former, former_title, former_at from documents where page_id = :page

-- pages_to_look_at
select p.* from pages p
where p.source_id = :source and (
    p.status not in ('deleted', 'redirect') or p.listed = 1 or exists (
        select 1 from links l join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
        where l.source_id = :source and l.url = p.url and e.follow = 1
            and f.status not in ('deleted', 'redirect') and f.missing_count = 0
    )
)

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

-- doomed
select * from pages where source_id = :source and doomed_by is not null and content_hash is not null

-- moves
select url, status, moved_to from pages
where source_id = :source and (
    moved_to is not null or url in (select moved_to from pages where source_id = :source)
)

-- live_count
select count(*) as live from pages where source_id = :source and content_hash is not null

-- moves_of_source
select url, moved_to from pages where source_id = :source and moved_to is not null

-- move_targets
select p.*, (
    select max(r.started_at) from changes c join runs r on r.id = c.run_id
    where c.source_id = p.source_id and c.url = p.url and c.kind = 'new'
) as found_at
from pages p where p.source_id = :source and p.url in {list urls}
