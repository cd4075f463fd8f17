create table logins (
    digest text primary key,
    token_id integer not null references tokens (id) on delete cascade,
    expires_at {time} not null
);
create index logins_of on logins (token_id, expires_at);
create index logins_expires on logins (expires_at);
