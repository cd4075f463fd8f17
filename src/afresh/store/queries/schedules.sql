-- due_rows
select c.id as crawl_id, c.url, c.scheduled_for as next_at, c.updated_at as written_at, p.last_seen as answered_at
from page_crawls c join pages p on p.id = c.page_id
where c.outcome is null and c.locked_at is null and c.run_id is null
    and (c.scheduled_for <= :now or c.updated_at > :now or p.last_seen <= :oldest)
    and p.source_id = :source and (p.status not in ('deleted', 'redirect') or p.listed = 1)
    and coalesce(p.queued_run, 0) <> :run

-- waiting_rows
select c.url, c.scheduled_for as next_at, c.updated_at as written_at, p.last_seen as answered_at
from page_crawls c join pages p on p.id = c.page_id
where c.outcome is null and c.locked_at is null and c.run_id is null
    and p.source_id = :source and (p.status not in ('deleted', 'redirect') or p.listed = 1)

-- count_some_pages
select count(*) as number from (select 1 from pages where source_id = :source limit :most) counted

-- next_looks
select c.url, c.scheduled_for as next_at, c.updated_at as written_at, p.last_seen as answered_at
from {open rows}
where p.id = c.page_id and c.outcome is null
    and c.scheduled_for >= :since and (c.scheduled_for > :since or c.url > :after_url)
    and p.source_id = :source and (p.status not in ('deleted', 'redirect') or p.listed = 1)
    and (:everything = 1 or c.scheduled_for <= :now or c.updated_at > :now or p.last_seen <= :oldest)
order by c.scheduled_for, c.url
limit :limit

-- backing_off
select p.url, p.failures, c.scheduled_for as next_at, (
    select h.reason from page_crawls h where h.page_id = p.id and h.outcome is not null order by h.id desc limit 1
) as reason
from pages p join page_crawls c on c.page_id = p.id and c.outcome is null
where p.source_id = :source and p.failures > 0 and c.scheduled_for > :now and p.status not in ('deleted', 'redirect')
order by c.scheduled_for, p.url

-- await_look
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select p.id, null, p.url, r.domain, -p.depth, r.at, r.now, r.now
from {rows source url domain at now} r join pages p on p.source_id = r.source and p.url = r.url
where true
on conflict (page_id) where outcome is null do nothing

-- rhythms
select url, change_count, quiet_seconds, span_seconds from pages
where source_id = :source and content_hash is not null order by url

-- schedules
select *, source_id as source, run_id as run from schedules order by next_at, source_id

-- plan_schedule
insert into schedules (source_id, rule, slot, next_at, planned_at) values (:source, :rule, :slot, :at, :now)
on conflict (source_id) do update
set rule = excluded.rule, slot = excluded.slot, next_at = excluded.next_at, planned_at = excluded.planned_at
where (schedules.rule <> excluded.rule or schedules.planned_at > excluded.planned_at)
    and (schedules.held_by is null or schedules.held_by not in (select name from workers))

-- drop_schedule
delete from schedules where source_id = :source

-- hold_schedule
update schedules set held_by = :worker
where source_id = :source and next_at = :at
    and (held_by is null or held_by = :worker or held_by not in (select name from workers))

-- let_go_schedule
update schedules set held_by = null where source_id = :source and held_by = :worker

-- settle_schedule
update schedules
set slot = :slot, next_at = :at, planned_at = :now, fired_at = :since, run_id = :run,
    outcome = :outcome, held_by = null
where source_id = :source and held_by = :worker
