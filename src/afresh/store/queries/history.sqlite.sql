-- insert_change
insert into changes (source_id, page_id, url, kind, run_id, at, old_hash, new_hash, diff, moved_to)
values (:source, :page, :url, :kind, :run, :now, :old_hash, :new_hash, :diff, :moved_to)
