-- count_copies
select case
        when c.state = 'active' and c.held_hash = p.content_hash then 'active'
        when c.state in ('processing', 'error') and c.wanted_hash = p.content_hash then c.state
        else 'ready_for_indexing' end as state,
    count(*) as number
from pages p left join copies c on c.page_id = p.id and c.sink = :name
where p.source_id in {list sources} and p.content_hash is not null
group by 1

-- count_stuck
select count(*) as number from copies c join pages p on p.id = c.page_id
where c.sink = :name and c.state = 'processing' and c.error like 'stuck: %' and p.source_id in {list sources}
    and c.wanted_hash = p.content_hash

-- due_tally
select coalesce(sum(w.due), 0) as due, coalesce(sum(w.due * w.held), 0) as stale,
    min(case when w.due = 0 then w.scheduled_for end) as next, min(case when w.due = 0 then w.last_seen end) as seen
from (
    select c.scheduled_for, p.last_seen,
        case when c.scheduled_for <= :now or c.updated_at > :now or p.last_seen <= :oldest then 1 else 0 end as due,
        case when p.status in ('deleted', 'redirect', 'error', 'pending') then 0 else 1 end as held
    from {open rows}
    where p.id = c.page_id and c.outcome is null
        and p.source_id = :source and (p.status not in ('deleted', 'redirect') or p.listed = 1)
) w

-- due_tallies
select w.source_id, sum(w.due) as due, sum(w.due * w.held) as stale,
    min(case when w.due = 0 then w.scheduled_for end) as next
from (
    select p.source_id, c.scheduled_for,
        case when c.scheduled_for <= :now or c.updated_at > :now then 1 else 0 end as due,
        case when p.status in ('deleted', 'redirect', 'error', 'pending') then 0 else 1 end as held
    from page_crawls c cross join pages p
    where p.id = c.page_id and c.outcome is null
        and (p.status not in ('deleted', 'redirect') or p.listed = 1)
) w
group by w.source_id

-- runs_by_state
select state, count(*) as number from runs group by state order by state

-- copies_by_state
select sink, state, count(*) as number from copies group by sink, state order by sink, state

-- counts_of_runs
select id, state, counts from runs where id > :after order by id limit :limit

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

-- busiest_hosts
select domain, sum(case when locked_by in {list workers} then 0 else 1 end) as waiting,
    sum(case when locked_by in {list workers} then 1 else 0 end) as held,
    min(case when locked_by in {list workers} then null else scheduled_for end) as oldest
from page_crawls where outcome is null and run_id is not null
group by domain order by waiting desc, domain limit :limit

-- last_run
select id as last_run, state as last_state, mode as last_mode, finished_at as last_end from runs where source_id = :source and mode not in ('check', 'sync') order by id desc limit 1

-- oldest_checks
select p.source_id, min(case
    when p.listed = 1 and s.told_at > p.checked_at then s.told_at
    when p.observed_at >= p.last_seen then p.observed_at
    when p.last_seen < p.checked_at then p.last_seen
    else p.checked_at
end) as oldest
from pages p join sources s on s.id = p.source_id where p.status = 'active' group by p.source_id

-- source_numbers
select n.pages, n.errors,
    (select count(*) from pages where source_id = :source and doubt is not null and status <> 'deleted') as doubtful,
    (select count(*) from chunks c join pages p on p.id = c.page_id where p.source_id = :source) as chunks,
    (select count(*) from links where source_id = :source) as links,
    (
        select min(case
            when p.listed = 1 and s.told_at > p.checked_at then s.told_at
            when p.observed_at >= p.last_seen then p.observed_at
            when p.last_seen < p.checked_at then p.last_seen
            else p.checked_at
        end)
        from pages p join sources s on s.id = p.source_id where p.source_id = :source and p.status = 'active'
    ) as oldest_check
from (
    select count(case when status not in ('deleted', 'redirect', 'error', 'pending') then 1 end) as pages,
        count(case when status = 'error' then 1 end) as errors
    from pages where source_id = :source
) n

-- unembedded_without_text
select count(*) as without_text from chunks c
where c.whole = 0 and not exists (select 1 from vectors v where v.model_id = :model and v.text_hash = c.text_hash)

-- unembedded_counts
select count(*) as missing, count(case when c.whole = 0 then 1 end) as without_text
from chunks c join pages p on p.id = c.page_id
where (:source is null or p.source_id = :source)
    and not exists (select 1 from vectors v where v.model_id = :model and v.text_hash = c.text_hash)
