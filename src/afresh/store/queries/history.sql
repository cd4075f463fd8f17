-- change_records
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_of_source
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.source_id = :source and c.id < coalesce(:top, 9223372036854775807)
order by c.id desc
limit :limit

-- changes_of_kind
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.source_id = :source and c.kind = :kind and c.id < coalesce(:top, 9223372036854775807)
order by c.id desc
limit :limit

-- every_change_of_kind
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.kind = :kind and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_in_run
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.run_id = :run and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_of_kind_in_run
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.run_id = :run and c.kind = :kind and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_of_url
select c.*, c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.url = :url and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
    and (:run is null or c.run_id = :run) and (:kind is null or c.kind = :kind)
order by c.id desc
limit :limit

-- changes_of_run
select c.id, c.url, c.kind, c.run_id, c.at, c.old_hash, c.new_hash, null as diff, c.moved_to,
    c.run_id as run, s.name as source, nullif(s.version, '') as version
from changes c join sources s on s.id = c.source_id
where c.run_id = :run and c.kind in {list kinds}
order by c.id
limit :limit

-- attempt_records
select * from page_crawls
where page_id = :page and (
    :top is null or (:until is null and id < :top)
    or completed_at < :until or (completed_at = :until and id < :top)
)
order by (completed_at is null) desc, completed_at desc, id desc limit :limit

-- attempt_place
select outcome, completed_at from page_crawls where id = :top

-- attempts_with_outcome
select * from page_crawls
where run_id = :run and outcome = :outcome and id > :after
order by id
limit :limit

-- listings_of_page
select c.* from pages p join runs r on r.source_id = p.source_id
join page_crawls c on c.run_id = r.id and c.unchanged is not null
where p.id = :page and (
        :top is null or (:until is null and c.id < :top)
        or c.completed_at < :until or (c.completed_at = :until and c.id < :top)
    )
    and (c.untold is null or (p.listed = 1 and c.untold not like '%,' || p.id || ',%'))
    and not exists (select 1 from page_crawls o where o.page_id = p.id and o.run_id = c.run_id)
    and (
        select h.outcome from page_crawls h
        where h.page_id = p.id and h.completed_at <= c.completed_at and (
            h.outcome not in ('cancelled', 'abandoned') or h.reason like 'no link led here%'
        )
        order by h.completed_at desc, h.id desc limit 1
    ) in ('success', 'not_modified')
    and not exists (
        select 1 from changes d
        where d.page_id = p.id and d.kind = 'deleted' and d.at <= c.completed_at and not exists (
            select 1 from page_crawls n
            where n.page_id = p.id and n.outcome in ('success', 'not_modified')
                and n.completed_at > d.at and n.completed_at <= c.completed_at
        )
    )
order by c.completed_at desc, c.id desc limit :limit

-- count_listings_of_page
select count(*) as listings from pages p join runs r on r.source_id = p.source_id
join page_crawls c on c.run_id = r.id and c.unchanged is not null
where p.id = :page
    and (c.untold is null or (p.listed = 1 and c.untold not like '%,' || p.id || ',%'))
    and not exists (select 1 from page_crawls o where o.page_id = p.id and o.run_id = c.run_id)
    and (
        select h.outcome from page_crawls h
        where h.page_id = p.id and h.completed_at <= c.completed_at and (
            h.outcome not in ('cancelled', 'abandoned') or h.reason like 'no link led here%'
        )
        order by h.completed_at desc, h.id desc limit 1
    ) in ('success', 'not_modified')
    and not exists (
        select 1 from changes d
        where d.page_id = p.id and d.kind = 'deleted' and d.at <= c.completed_at and not exists (
            select 1 from page_crawls n
            where n.page_id = p.id and n.outcome in ('success', 'not_modified')
                and n.completed_at > d.at and n.completed_at <= c.completed_at
        )
    )

-- history_by_url
select c.*, s.name as source, nullif(s.version, '') as version
from page_crawls c left join pages p on p.id = c.page_id left join runs r on r.id = c.run_id
left join sources s on s.id = coalesce(p.source_id, r.source_id)
where c.url = :url and (:source is null or s.id = :source)
order by c.id desc

-- attempts_count
select count(*) as attempts from page_crawls where page_id = :page and outcome is not null

-- latest_open
select scheduled_for, locked_by from page_crawls where page_id = :page and outcome is null

-- linked_from
select f.url from (
    select page_id from page_links
    where link_id = (select id from links where source_id = :source and url = :url) and page_id <> :page
    order by page_id limit :most
) e join pages f on f.id = e.page_id
order by f.depth, f.url limit :limit

-- count_linked_from
select count(*) from page_links
where link_id = (select id from links where source_id = :source and url = :url) and page_id <> :page

-- root_page
select * from pages where source_id = :source and url = :root

-- latest_attempt
select * from page_crawls where page_id = :page and outcome is not null and (outcome <> 'cancelled' or reason like 'no link led here%')
order by id desc limit 1
