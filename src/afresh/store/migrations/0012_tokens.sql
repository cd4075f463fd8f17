create table tokens (
    id {kept_pk},
    name text not null,
    digest text not null unique,
    scope text not null,
    sources text not null default '[]',
    created_at {time} not null,
    expires_at {time},
    revoked_at {time}
);

create table webhook_deliveries (
    hook text not null,
    delivery text not null,
    at {time} not null,
    primary key (hook, delivery)
);
create index webhook_deliveries_at on webhook_deliveries (at);

create table webhook_wishes (
    id {kept_pk},
    source_id integer not null references sources (id) on delete cascade,
    url text not null,
    times integer not null default 1,
    at {time} not null
);
create unique index webhook_wishes_of on webhook_wishes (source_id, url);

create table outbox (
    id {kept_pk},
    target text not null,
    event text not null,
    run_id integer not null references runs (id) on delete cascade,
    state text not null,
    attempts integer not null default 0,
    created_at {time} not null,
    next_try_at {time},
    ended_at {time},
    error text
);
create index outbox_state on outbox (state, next_try_at);
create index outbox_runs on outbox (run_id);
