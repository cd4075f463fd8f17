-- run_records
select * from runs
where (:top is null or id < :top) and (:everywhere = 1 or source_id in {list sources})
    and (:state is null or state = :state)
order by id desc
limit :limit

-- open_run
select * from runs where source_id = :source and mode <> 'sync' and state in ('queued', 'running', 'cancelled') order by id desc limit 1

-- insert_run
insert into runs (source_id, mode, state, full_look, worker, known, started_at, taken_at)
values (
    :source, :mode, :state, :full, :worker,
    (select count(*) from pages where source_id = :source and content_hash is not null), :now, :taken_at
)
returning *

-- resume_run
update runs set state = :state, worker = :worker, counts = :counts, taken_at = :taken_at, finished_at = null, error = null
where id = :run
returning *

-- restart_run
update runs set started_at = :now, notes = '[]', worked_at = null,
    queued = (select count(*) from pages where source_id = :source and queued_run = :run),
    known = (select count(*) from pages where source_id = :source and content_hash is not null)
where id = :run

-- unqueue_pages
update pages set queued_run = null
where source_id = :source and queued_run = :run and not exists (
    select 1 from page_crawls c
    where c.page_id = pages.id and c.run_id = :run and c.outcome is null and c.locked_at is not null
)

-- free_rows_of_run
update page_crawls set run_id = null, updated_at = :now
where run_id = :run and outcome is null and locked_at is null

-- close_stale_runs
update runs set state = 'failed', finished_at = :now, error = 'given up for a newer run'
where source_id = :source and mode <> 'sync' and state in ('queued', 'running', 'cancelled')

-- free_rows_of_closed_runs
update page_crawls set run_id = null, updated_at = :now
where outcome is null and locked_at is null and run_id in (
    select id from runs where source_id = :source and state not in ('queued', 'running', 'cancelled')
)

-- run_since
select id from runs where source_id = :source and started_at >= :slot and mode not in ('check', 'sync') limit 1

-- run_by_id
select * from runs where id = :run

-- last_runs
select * from runs where source_id = :source and mode not in ('check', 'sync') order by id desc limit :limit

-- live_runs
select r.* from runs r
where r.state in ('queued', 'running', 'cancelled', 'needs_confirmation') and r.mode <> 'sync' and not (r.mode = 'check' and r.state = 'running')
order by r.id desc

-- runs_for_workers
select r.* from runs r join sources s on s.id = r.source_id
where r.state in ('queued', 'running', 'cancelled') and r.mode not in ('check', 'sync') and s.name not in {list kinds}
order by r.id

-- finish_run
update runs set state = :state, finished_at = :now, counts = :counts, notes = :notes, error = :error
where id = :run and coalesce(worker, '') = coalesce(:worker, '') and state = :was
returning *

-- cancel_run
update runs set state = 'cancelled', finished_at = :now where id = :run and state in ('queued', 'running') returning *

-- supersede_waiting
update runs set state = 'partial', error = 'a later run looked again'
where source_id = :source and id <> :run and state = 'needs_confirmation'

-- forgive_run
update pages set doomed_by = null where source_id = :source and doomed_by = :run

-- forgive_earlier
update pages set doomed_by = null where source_id = :source and doomed_by is not null and doomed_by <> :run

-- ask_root_again
update pages set queued_run = null
where source_id = :source and queued_run = :run and url = (select url from sources where id = :source) and not exists (
    select 1 from page_crawls c where c.page_id = pages.id and c.run_id = :run and c.outcome is null
)

-- counts_of_run
select counts from runs where id = :run {for update}

-- count_run
update runs set counts = :counts, worked_at = :now where id = :run

-- count_queued
update runs set queued = queued + :number where id = :run

-- help_run
update workers set helps = :run where name = :worker

-- mend_times
update page_crawls set scheduled_for = :now, updated_at = :now
where run_id = :run and outcome is null and locked_at is null and updated_at > :now

-- wake_hosts
update hosts set next_allowed_at = null where next_allowed_at > :latest

-- unkept_run
select u.*, u.started_at as taken_at, u.finished_at as worked_at from unkept_runs u where u.id = :run

-- stamp_source
update sources set crawl_time = :now, updated_at = :now where id = :source

-- move_source
update sources set url = :url, mark = null, updated_at = :now where id = :source
