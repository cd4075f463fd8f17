create index pages_by_status on pages (source_id, status, id);
create index pages_by_depth on pages (source_id, depth, id);
create index changes_by_run on changes (run_id, id);
create index links_by_worth on links (source_id, (coalesce(score, 0)) desc, url, id);
