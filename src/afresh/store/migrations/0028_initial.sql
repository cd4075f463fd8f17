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
    mark text,
    told_at {time},
    told_run_at {time},
    links_scored text,
    operator_url text,
    trial integer not null default 0,
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
    finished_at {time},
    taken_at {time},
    worked_at {time}
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
    crashes integer not null default 0,
    doubt text,
    doubt_hash text,
    doubt_run integer,
    links_left_out integer not null default 0,
    chunker text,
    observed_at {time},
    change_count integer not null default 0,
    quiet_seconds {real} not null default 0,
    span_seconds {real} not null default 0,
    refused_hash text,
    unique (source_id, url)
);
create index pages_language on pages (language);
create index pages_doomed on pages (source_id) where doomed_by is not null;
create index pages_missing on pages (source_id) where missing_count > 0;
create index pages_doubt on pages (source_id) where doubt is not null;
create index pages_content on pages (content_hash) where content_hash is not null;
create index pages_by_status on pages (source_id, status, id);
create index pages_by_depth on pages (source_id, depth, id);
create index pages_by_number on pages (source_id, id);

create table documents (
    page_id integer primary key references pages (id) on delete cascade,
    markdown text,
    summary text,
    sketch text,
    length integer,
    former text,
    former_at {time},
    former_title text
);
create index documents_alike on documents (substr(sketch, 1, 8));
create index documents_former on documents (former_at) where former is not null;

create table chunks (
    id {kept_pk},
    page_id integer not null references pages (id) on delete cascade,
    sort_order integer not null,
    title text not null,
    heading text not null,
    content text not null,
    terms text,
    metadata text not null,
    config text not null,
    whole integer not null default 1,
    text_hash text not null,
    created_at {time} not null
);
create index chunks_by_page on chunks (page_id, sort_order);
create index chunks_by_config on chunks (config);
create index chunks_by_text on chunks (text_hash, page_id);

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
    updated_at {time} not null,
    unchanged integer,
    untold text
);
create unique index page_crawls_open on page_crawls (page_id) where outcome is null;
create index page_crawls_domain on page_crawls (domain) where outcome is null;
create index page_crawls_poll on page_crawls (scheduled_for, locked_at) where outcome is null;
create index page_crawls_work on page_crawls (run_id, priority desc, id) where outcome is null and locked_at is null;
create index page_crawls_held on page_crawls (locked_by) where locked_by is not null;
create index page_crawls_history on page_crawls (page_id, created_at desc);
create index page_crawls_hosts on page_crawls (run_id, domain)
where outcome is null and locked_at is null and run_id is not null;
create index page_crawls_by_outcome on page_crawls (run_id, outcome, id) where outcome is not null;
create index page_crawls_listings on page_crawls (run_id) where unchanged is not null;

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
create index links_by_worth on links (source_id, (coalesce(score, 0)) desc, url, id);

create table page_links (
    page_id integer not null references pages (id) on delete cascade,
    link_id integer not null references links (id) on delete cascade,
    position integer not null,
    text text not null,
    follow integer not null default 1,
    primary key (page_id, link_id)
) {without_rowid};

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
create index changes_by_run on changes (run_id, id);
create index changes_by_kind on changes (source_id, kind, id);
create index changes_of_kind on changes (kind, id);
create index changes_of_url on changes (url, id);
create index changes_by_run_and_kind on changes (run_id, kind, id);
create index changes_by_page on changes (page_id);

create table hosts (
    domain text primary key,
    locked_by text,
    wanted_by text,
    used integer not null default 1,
    next_allowed_at {time},
    run_id integer,
    wanted_run integer
);
create index hosts_held on hosts (locked_by) where locked_by is not null;
create index hosts_resting on hosts (next_allowed_at) where next_allowed_at is not null;

create table workers (
    name text primary key,
    host text not null,
    pid integer not null,
    started_at {time} not null,
    heartbeat_at {time} not null,
    helps integer
);

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

create table link_asked (
    link_id integer not null references links (id) on delete cascade,
    text text not null,
    recipe text not null,
    keywords text not null,
    answer text not null default '{{}}',
    comment text not null default '',
    asked_at {time} not null,
    primary key (link_id, text)
) {without_rowid};

create table link_keywords (
    link_id integer not null references links (id) on delete cascade,
    keyword text not null,
    score {real} not null,
    primary key (link_id, keyword)
) {without_rowid};

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
create index outbox_ended on outbox (ended_at) where ended_at is not null;

create table answers (
    caller text not null,
    name text not null,
    asked text not null,
    status_code integer,
    location text,
    body text,
    created_at {time} not null,
    primary key (caller, name)
);
create index answers_created on answers (created_at);

create table logins (
    digest text primary key,
    token_id integer not null references tokens (id) on delete cascade,
    expires_at {time} not null
);
create index logins_of on logins (token_id, expires_at);
create index logins_expires on logins (expires_at);

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

create table page_numbers (
    id integer primary key,
    last integer not null
);

create table notices (
    name text primary key,
    told_at {time} not null
) {without_rowid};
