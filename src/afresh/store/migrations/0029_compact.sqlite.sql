-- The vectors with the same id / 256, made smaller: see store/vector_codes.py. A model is `coded` if all of its are.
alter table models add column coded integer not null default 0;
create table vector_blocks (
    model_id integer not null references models (id) on delete cascade,
    block integer not null,
    places blob not null,
    codes blob not null,
    middle blob not null,
    primary key (model_id, block)
);
