create table store_ids (
    id text primary key
);

create table sinks (
    name text primary key,
    place text not null,
    worker text,
    audit integer not null default 1,
    audited_at {time},
    resume_at {time},
    synced_at {time},
    error text,
    failing_since {time}
);

create table copies (
    id {kept_pk},
    sink text not null,
    source_id integer not null,
    source text not null,
    page_id integer references pages (id) on delete set null,
    url text not null,
    state text not null,
    wanted_hash text,
    held_hash text,
    remote_id text,
    remote_name text,
    putting integer not null default 0,
    former text not null default '[]',
    leftovers text not null default '[]',
    attempts integer not null default 0,
    put_at {time},
    failed_at {time},
    next_try_at {time},
    error text,
    created_at {time} not null,
    updated_at {time} not null
);
create unique index copies_of_pages on copies (page_id, sink) where page_id is not null;
create index copies_of_sinks on copies (sink, id);
create index copies_of_sources on copies (source_id);
