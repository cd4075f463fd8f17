alter table sources add column trial integer not null default 0;

create table unkept_runs (
    id integer primary key,
    source_id integer not null,
    name text not null,
    version text not null,
    kind text not null,
    url text not null,
    mode text not null,
    state text not null,
    full_look integer not null,
    worker text,
    queued integer not null,
    known integer not null,
    counts text not null,
    notes text not null,
    error text,
    started_at {time} not null,
    finished_at {time}
);
