create index page_links_of_link on page_links (link_id, page_id);
drop index page_links_by_link;
create index changes_by_day on changes (source_id, ((at at time zone 'UTC')::date), kind);
