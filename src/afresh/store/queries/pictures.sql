-- map_pages
select id, url, title, status, depth, doubt, change_count, quiet_seconds, span_seconds from pages
where source_id = :source and status <> 'deleted'
order by depth, id
limit :limit

-- map_size
select count(*) as pages from pages where source_id = :source and status <> 'deleted'

-- map_targets
select l.id as link_id, p.id as page_id from pages p join links l on l.source_id = p.source_id and l.url = p.url
where p.id in {list pages}

-- map_links
select e.page_id, e.link_id from page_links e
where e.page_id in {list pages} and +e.link_id in {list links}
order by e.page_id, e.link_id

-- host_queues
select domain, sum(case when locked_at is null then 1 else 0 end) as waiting,
    sum(case when locked_at is null then 0 else 1 end) as held,
    min(case when locked_at is null then scheduled_for end) as oldest
from page_crawls where outcome is null and run_id in {list runs}
group by domain order by waiting desc, domain limit :limit

-- host_states
select domain, locked_by, next_allowed_at from hosts where domain in {list domains} order by domain

-- resting_now
select domain, locked_by, next_allowed_at from hosts where next_allowed_at > :now
order by next_allowed_at desc, domain limit :limit
