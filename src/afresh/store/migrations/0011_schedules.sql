create table schedules (
    source_id integer primary key references sources (id) on delete cascade,
    rule text not null,
    slot {time} not null,
    next_at {time} not null,
    planned_at {time} not null,
    held_by text,
    run_id integer,
    outcome text,
    fired_at {time}
);
alter table pages add column observed_at {time};
alter table pages add column change_count integer not null default 0;
alter table pages add column quiet_seconds {real} not null default 0;
alter table pages add column span_seconds {real} not null default 0;
