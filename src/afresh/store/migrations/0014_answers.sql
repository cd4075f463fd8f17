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
