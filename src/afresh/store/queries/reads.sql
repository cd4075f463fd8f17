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

-- history
select * from page_crawls where page_id = :page order by id desc

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
select c.*, s.name as source_name, s.version as source_version
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

-- links_to
select s.*, f.url as page, f.depth as page_depth, e.follow, l.admitted from links l
join sources s on s.id = l.source_id join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
where l.url = :url and (:source is null or l.source_id = :source)
order by f.depth, e.follow desc, f.url limit 1

-- links
select l.id, l.url, l.score, l.comment from links l
where l.source_id = :source and exists (select 1 from page_links e where e.link_id = l.id)
    and (:on_page is null or l.id in (
        select e.link_id from page_links e join pages f on f.id = e.page_id
        where f.source_id = :source and f.url = :on_page
    ))
    and (:least is null or l.score >= :least)
    and (:keyword is null or exists (
        select 1 from link_keywords k where k.link_id = l.id and k.keyword = :keyword
    ))
order by coalesce(l.score, 0) desc, l.url
limit :limit

-- texts_of_links
select e.link_id, e.text, count(*) as pages, max(f.crawl_time) as crawl_time
from page_links e join pages f on f.id = e.page_id
where e.link_id in {list links} group by e.link_id, e.text

-- pages_of_links
select link_id, url from (
    select e.link_id, f.url, row_number() over (partition by e.link_id order by f.depth, f.url) as place
    from page_links e join pages f on f.id = e.page_id where e.link_id in {list links}
) placed
where place <= :most order by link_id, place

-- sketches_like
select d.sketch from documents d join pages p on p.id = d.page_id
where substr(d.sketch, 1, 8) = :first and p.source_id = :source and p.id <> :page
    and p.changed_at < (select started_at from runs where id = :run)
limit 50

-- doubted_alike
select count(*) as pages from pages
where source_id = :source and doubt is not null and doubt_hash = :content_hash and id <> :page

-- held_document
select markdown, sketch, length, former, former_title, former_at from documents where page_id = :page

-- totals
select
    (select count(*) from sources) as sources,
    (select count(*) from pages where status = 'active') as pages,
    (select count(*) from pages where doubt is not null and status <> 'deleted') as doubtful,
    (select count(*) from chunks) as chunks,
    (select count(*) from page_crawls) - (select count(*) from page_crawls where outcome is null) as attempts

-- workload
select coalesce(sum(case when locked_by in {list workers} then 0 else 1 end), 0) as waiting,
    coalesce(sum(case when locked_by in {list workers} then 1 else 0 end), 0) as held,
    min(case when locked_by in {list workers} then null else scheduled_for end) as oldest
from page_crawls where outcome is null and run_id is not null

-- held_by
select locked_by, count(*) as number from page_crawls where locked_by is not null group by locked_by

-- busiest_hosts
select domain, sum(case when locked_by in {list workers} then 0 else 1 end) as waiting,
    sum(case when locked_by in {list workers} then 1 else 0 end) as held,
    min(case when locked_by in {list workers} then null else scheduled_for end) as oldest
from page_crawls where outcome is null and run_id is not null
group by domain order by waiting desc, domain limit :limit

-- pages_to_look_at
select p.* from pages p
where p.source_id = :source and (
    p.status not in ('deleted', 'redirect') or p.listed = 1 or exists (
        select 1 from links l join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
        where l.source_id = :source and l.url = p.url and e.follow = 1
            and f.status not in ('deleted', 'redirect') and f.missing_count = 0
    )
)

-- latest_moment
select max(at) as at
from (select max(started_at) as at from runs union all select max(heartbeat_at) from workers) moments
