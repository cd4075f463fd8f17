-- insert_change
insert into changes (source_id, page_id, url, kind, run_id, at, old_hash, new_hash, diff, moved_to)
select r.source, r.page, r.url, r.kind, r.run, r.now, r.old_hash, r.new_hash, r.diff, r.moved_to
from {rows source page url kind run now old_hash new_hash diff moved_to} r
