-- rhythms
select url, change_count, quiet_seconds, span_seconds from pages
where source_id = :source and content_hash is not null order by url

-- schedules
select * from schedules order by next_at, source_id

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
