create index changes_by_day on changes (source_id, substr(at, 1, 10), kind);
