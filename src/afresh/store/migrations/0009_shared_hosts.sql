alter table hosts add column run_id integer;
alter table hosts add column wanted_run integer;
create index page_crawls_hosts on page_crawls (run_id, domain)
where outcome is null and locked_at is null and run_id is not null;
