create table kb_records (
    page_id integer primary key references pages (id) on delete cascade,
    text_hash text,
    summary text,
    indexed_at {time},
    fetched_at {time},
    fetch_status text
);

create table kb_caches (
    path text primary key,
    digest text not null
);
