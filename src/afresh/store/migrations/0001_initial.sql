create table sources (
    id {kept_pk},
    name text not null,
    version text not null default '',
    kind text not null,
    url text not null,
    rules text not null default '{{}}',
    policy text not null default '{{}}',
    rules_seen text not null default '',
    frontier_open integer not null default 0,
    graph_changed integer not null default 1,
    crawl_time {time},
    created_at {time} not null,
    updated_at {time} not null,
    unique (name, version)
);

create table runs (
    id {kept_pk},
    source_id integer not null references sources (id) on delete cascade,
    mode text not null,
    state text not null,
    full_look integer not null default 0,
    worker text,
    queued integer not null default 0,
    known integer not null default 0,
    counts text not null default '{{}}',
    notes text not null default '[]',
    error text,
    started_at {time} not null,
    finished_at {time}
);
create index runs_by_source on runs (source_id, id);

create table pages (
    id {pk},
    source_id integer not null references sources (id) on delete cascade,
    url text not null,
    status text not null default 'pending',
    title text,
    depth integer not null default 0,
    language text,
    etag text,
    last_modified text,
    size integer,
    mtime_ns integer,
    validators_url text,
    content_type text,
    content_hash text,
    links_hash text,
    recipe text,
    failures integer not null default 0,
    gone_count integer not null default 0,
    missing_count integer not null default 0,
    doomed_by integer,
    moved_to text,
    listed integer not null default 0,
    queued_run integer,
    created_run integer,
    crawl_time {time},
    last_seen {time},
    last_scraped {time},
    checked_at {time},
    changed_at {time},
    created_at {time} not null,
    updated_at {time} not null,
    unique (source_id, url)
);
create index pages_language on pages (language);
create index pages_doomed on pages (source_id) where doomed_by is not null;
create index pages_missing on pages (source_id) where missing_count > 0;

create table documents (
    page_id integer primary key references pages (id) on delete cascade,
    markdown text,
    summary text
);

create table chunks (
    id {pk},
    page_id integer not null references pages (id) on delete cascade,
    sort_order integer not null,
    title text not null,
    heading text not null,
    content text not null,
    metadata text not null,
    config text not null,
    whole integer not null default 1,
    text_hash text not null,
    embedding {blob},
    created_at {time} not null
);
create index chunks_by_page on chunks (page_id, sort_order);

create table page_crawls (
    id {pk},
    page_id integer references pages (id) on delete set null,
    run_id integer,
    url text not null,
    domain text not null,
    priority integer not null default 0,
    scheduled_for {time} not null,
    locked_at {time},
    locked_by text,
    completed_at {time},
    outcome text,
    status_code integer,
    error_message text,
    reason text,
    created_at {time} not null,
    updated_at {time} not null
);
create unique index page_crawls_open on page_crawls (page_id) where outcome is null;
create index page_crawls_domain on page_crawls (domain) where outcome is null;
create index page_crawls_poll on page_crawls (scheduled_for, locked_at) where outcome is null;
create index page_crawls_work on page_crawls (run_id, priority desc, id) where outcome is null and locked_at is null;
create index page_crawls_held on page_crawls (locked_by) where locked_by is not null;
create index page_crawls_history on page_crawls (page_id, created_at desc);

create table links (
    id {pk},
    source_id integer not null references sources (id) on delete cascade,
    url text not null,
    admitted integer not null default 0,
    score {real},
    comment text,
    crawl_time {time},
    unique (source_id, url)
);

create table page_links (
    page_id integer not null references pages (id) on delete cascade,
    link_id integer not null references links (id) on delete cascade,
    position integer not null,
    text text not null,
    follow integer not null default 1,
    primary key (page_id, link_id)
) {without_rowid};
create index page_links_by_link on page_links (link_id);

create table changes (
    id {pk},
    source_id integer not null references sources (id) on delete cascade,
    page_id integer references pages (id) on delete set null,
    url text not null,
    kind text not null,
    run_id integer,
    at {time} not null,
    old_hash text,
    new_hash text,
    diff text,
    moved_to text
);
create index changes_by_source on changes (source_id, id);

create table hosts (
    domain text primary key,
    locked_by text,
    locked_until {time},
    wanted_by text,
    used integer not null default 1,
    next_allowed_at {time}
);

create table workers (
    name text primary key,
    host text not null,
    pid integer not null,
    started_at {time} not null,
    heartbeat_at {time} not null
);
