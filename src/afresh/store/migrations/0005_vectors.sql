create table models (
    id {kept_pk},
    name text not null unique,
    dimensions integer not null,
    serving integer not null default 0,
    created_at {time} not null
);
create unique index models_serving on models (serving) where serving = 1;

create table vectors (
    id {kept_pk},
    model_id integer not null references models (id) on delete cascade,
    text_hash text not null,
    vector {blob} not null,
    used_at {time} not null,
    unique (model_id, text_hash)
);
create index vectors_used on vectors (used_at);

alter table pages add column chunker text;
update pages set chunker = 'markdown-1' where content_hash is not null;
