create table sync_documents (
    run_id integer not null references runs (id) on delete cascade,
    copy_id integer not null,
    sink text not null,
    url text not null,
    outcome text not null,
    state text not null,
    remote_id text,
    remote_name text,
    error text,
    at {time} not null,
    primary key (run_id, copy_id)
) {without_rowid};
