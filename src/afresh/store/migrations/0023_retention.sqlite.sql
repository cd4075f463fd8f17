create index changes_by_page on changes (page_id);
