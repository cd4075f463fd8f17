create index page_crawls_by_outcome on page_crawls (run_id, outcome, id) where outcome is not null;
create index changes_by_kind on changes (source_id, kind, id);
create index changes_of_kind on changes (kind, id);
create index pages_by_number on pages (source_id, id);
create index changes_of_url on changes (url, id);
create index changes_by_run_and_kind on changes (run_id, kind, id);
