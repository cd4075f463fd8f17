-- paths_known
select id, url, depth, status, queued_run, created_run from pages
where source_id = :source and url in {list urls}

-- taken_room
select case when :partly = 0 then queued else (
    select count(*) from pages where source_id = :source and status not in ('deleted', 'redirect')
) end as taken
from runs where id = :run

-- lower_depth
update pages set depth = r.depth, updated_at = r.now from {rows page depth now} r where pages.id = r.page

-- raise_priority
update page_crawls set priority = -r.depth, updated_at = r.now from {rows page depth now} r
where page_crawls.page_id = r.page and outcome is null

-- unread_pages
select p.id from pages p join page_crawls c on c.page_id = p.id and c.outcome is null
where c.run_id = :run and c.locked_at is null and p.created_run = :run and p.content_hash is null
    and not exists (select 1 from page_crawls h where h.page_id = p.id and h.outcome is not null)
order by c.priority desc, c.id

-- unqueue_unread
delete from page_crawls where outcome is null and page_id in {list pages}

-- forget_unread
delete from pages where id in {list pages}

-- open_crawl
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select p.id, r.run, p.url, r.domain, -p.depth, r.now, r.now, r.now
from {rows source url run domain now} r join pages p on p.source_id = r.source and p.url = r.url
where true
on conflict (page_id) where outcome is null do update
set run_id = excluded.run_id, scheduled_for = excluded.scheduled_for, priority = excluded.priority,
    updated_at = excluded.updated_at

-- mark_queued
update pages set queued_run = :run where source_id = :source and url in {list urls}

-- adopt_known
update page_crawls set run_id = :run, scheduled_for = :now, updated_at = :now
where outcome is null and locked_at is null and run_id is null and page_id in (
    select id from pages
    where source_id = :source and status not in ('deleted', 'redirect') and coalesce(queued_run, 0) <> :run
)

-- adopt_rows
update page_crawls
set run_id = :run, updated_at = :now, scheduled_for = case when scheduled_for > :now then :now else scheduled_for end
where id in {list crawls}

-- rank_row
update page_crawls set priority = -r.rank from {rows crawl rank} r where page_crawls.id = r.crawl

-- unscheduled
select p.url, p.listed, p.checked_at from pages p
where p.source_id = :source and p.url in {list urls}
    and not exists (select 1 from page_crawls c where c.page_id = p.id and c.outcome is null)

-- mark_adopted
update pages set queued_run = :run
where source_id = :source and coalesce(queued_run, 0) <> :run
    and id in (select page_id from page_crawls where run_id = :run and outcome is null)

-- known_without_row
select p.url, p.depth from pages p
where p.source_id = :source and coalesce(p.queued_run, 0) <> :run and (
    p.status not in ('deleted', 'redirect') or p.listed = 1 or exists (
        select 1 from links l join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
        where l.source_id = :source and l.url = p.url and e.follow = 1
            and f.status not in ('deleted', 'redirect') and f.missing_count = 0
    )
)

-- frontier
select l.url as url, min(f.depth) + 1 as depth
from links l join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
where l.source_id = :source and l.admitted = 1 and e.follow = 1
    and not exists (select 1 from pages p where p.source_id = :source and p.url = l.url)
group by l.url
order by 2, min(e.position)

-- stored_children
select l.url as url, min(f.depth) + 1 as depth
from page_links e join links l on l.id = e.link_id join pages f on f.id = e.page_id
where e.page_id in {list pages} and e.follow = 1 and l.admitted = 1
group by l.url

-- busy_hosts
select domain, coalesce(locked_by = :worker and wanted_by <> :worker, false) as leaving,
    coalesce(locked_by <> :worker, true) or coalesce(next_allowed_at > :now, false) or used > 0 as closed
from hosts
where (locked_by is not null and locked_by <> :worker)
    or next_allowed_at > :now
    or (locked_by = :worker and wanted_by <> :worker)

-- claimable
select c.id as crawl_id, c.run_id, c.domain, p.*
from page_crawls c join pages p on p.id = c.page_id
where c.run_id = :run and c.outcome is null and c.locked_at is null and c.scheduled_for <= :now
    and c.domain not in {list blocked}
order by c.priority desc, c.id
limit :limit {for update of c skip locked}

-- claimed_at
select c.id as crawl_id, c.run_id, c.domain, p.*
from page_crawls c join pages p on p.id = c.page_id
where c.locked_by = :worker and c.locked_at = :now and c.run_id = :run and c.outcome is null
order by c.priority desc, c.id

-- lock_crawls
update page_crawls set locked_at = :now, locked_by = :worker, updated_at = :now where id in {list crawls}

-- know_hosts
insert into hosts (domain) select d.value from {list domains} d
where true
on conflict (domain) do nothing
returning domain

-- take_hosts
update hosts
set locked_by = :worker, run_id = :run,
    used = case when locked_by = :worker and used > 0 then 2 else 1 end,
    wanted_by = case when locked_by = :worker then wanted_by end
where domain in (
    select h.domain from hosts h
    where h.domain in {list domains}
        and (h.locked_by = :worker or (h.locked_by is null and coalesce(h.next_allowed_at <= :now, true)))
    {for update skip locked}
)
returning domain, used

-- want_hosts
update hosts set wanted_by = :worker, wanted_run = :run
where domain in (
    select w.domain from hosts w
    where w.wanted_by is null and w.domain in (
        select o.domain from (
            select h.domain, row_number() over (partition by h.locked_by order by h.domain) as place,
                count(*) over (partition by h.locked_by) as number, h.run_id
            from hosts h
            where h.locked_by <> :worker and h.wanted_by is null and exists (
                select 1 from page_crawls c
                where c.domain = h.domain and c.run_id = :run and c.outcome is null and c.locked_at is null
            )
        ) o
        where coalesce(o.run_id, 0) <> :run or 2 * o.place <= o.number
    )
    {for update skip locked}
)

-- hand_over_hosts
update hosts set locked_by = wanted_by, wanted_by = null, used = 0, run_id = wanted_run
where domain in (
    select h.domain from hosts h
    where h.locked_by = :worker and h.wanted_by <> :worker and (h.used > 0 or :had_turn = 1) and not exists (
        select 1 from page_crawls c where c.locked_by = :worker and c.domain = h.domain
    )
    {for update skip locked}
)

-- release_hosts
update hosts set locked_by = null, used = 1, run_id = null where locked_by in {list workers}

-- unwant_hosts
update hosts set wanted_by = null where wanted_by in {list workers}

-- pause_host
insert into hosts (domain, next_allowed_at) values (:domain, :until)
on conflict (domain) do update set next_allowed_at = excluded.next_allowed_at
where hosts.next_allowed_at is null or hosts.next_allowed_at < excluded.next_allowed_at

-- give_back_crawls
update page_crawls set locked_at = null, locked_by = null, updated_at = :now
where locked_by = :worker and outcome is null and id in {list crawls}

-- release_crawls
update page_crawls set locked_at = null, locked_by = null, updated_at = :now
where locked_by = :worker and outcome is null

-- abandon_crawls
update page_crawls
set outcome = 'abandoned', completed_at = :now, updated_at = :now, locked_at = null, locked_by = null,
    error_message = 'the worker stopped before it finished: ' || locked_by
where outcome is null and locked_by in {list workers}
returning page_id, run_id, url, domain, priority

-- reopen_crawl
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select r.page_id, r.run_id, r.url, r.domain, r.priority, r.now, r.now, r.now
from {rows page_id run_id url domain priority now} r
where true
on conflict (page_id) where outcome is null do nothing

-- lock_owners
select distinct locked_by from page_crawls where locked_by is not null
union
select distinct locked_by from hosts where locked_by is not null

-- held_by
select locked_by, count(*) as number from page_crawls where locked_by is not null group by locked_by

-- latest_moment
select max(at) as at
from (select max(started_at) as at from runs union all select max(heartbeat_at) from workers) moments

-- allow_again
update pages set queued_run = null
where source_id = :source and queued_run = :run and gone_count = 0 and url in {list urls} and not exists (
    select 1 from page_crawls c where c.page_id = pages.id and c.run_id = :run and c.outcome is null
)

-- open_rows
select count(*) as open, coalesce(sum(case when c.locked_at is not null then 1 else 0 end), 0) as held,
    min(case
        when c.locked_at is not null then null
        when h.next_allowed_at > c.scheduled_for then h.next_allowed_at
        else c.scheduled_for
    end) as next_at
from page_crawls c left join hosts h on h.domain = c.domain
where c.run_id = :run and c.outcome is null

-- upsert_worker
insert into workers (name, host, pid, started_at, heartbeat_at) values (:name, :host, :pid, :now, :now)
on conflict (name) do update
set host = excluded.host, pid = excluded.pid, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at

-- beat
update workers set heartbeat_at = :now where name = :worker

-- workers
select * from workers order by started_at

-- heartbeats
select name, heartbeat_at from workers where name in {list workers} {for update}

-- forget_workers
delete from workers where name in {list workers}
