alter table hosts add column run_id integer;
alter table hosts add column wanted_run integer;
drop index page_crawls_domain;
create index page_crawls_domain on page_crawls (domain, run_id) where outcome is null;
