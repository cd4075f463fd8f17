alter table page_crawls add column unchanged integer;
alter table page_crawls add column untold text;
create index page_crawls_listings on page_crawls (run_id) where unchanged is not null;
create table notices (name text primary key, told_at {time} not null) {without_rowid};
