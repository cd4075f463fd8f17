alter table hosts add column run_id integer;
alter table hosts add column wanted_run integer;
create index page_crawls_hosts on page_crawls (run_id, domain)
where outcome is null and locked_at is null and run_id is not null;
alter table hosts drop column locked_until;
create index hosts_held on hosts (locked_by) where locked_by is not null;
create index hosts_resting on hosts (next_allowed_at) where next_allowed_at is not null;
