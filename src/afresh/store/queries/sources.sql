-- insert_source
insert into sources (name, version, kind, url, rules, policy, operator_url, trial, created_at, updated_at)
values (:name, :version, :kind, :url, :rules, :policy, :operator_url, :trial, :now, :now)
on conflict (name, version) do nothing

-- adopt_source
update sources set operator_url = url where id = :source and operator_url is null

-- update_source
update sources set rules = :rules, policy = :policy, updated_at = :now where id = :source

-- source_by_label
select * from sources where name = :name and version = :version

-- source_by_url
select * from sources
where version = :version and (
    url = :url or id in (select source_id from pages where url = :url and depth = 0 and moved_to is not null)
)
order by case when url = :url then 0 else 1 end, id limit 1

-- source_by_id
select * from sources where id = :source

-- sources
select * from sources order by name, version

-- sources_named
select * from sources where name = :name order by version

-- cancel_source
update page_crawls
set outcome = 'cancelled', completed_at = :now, updated_at = :now, locked_at = null, locked_by = null,
    reason = 'the source was removed'
where outcome is null and page_id in (select id from pages where source_id = :source)

-- delete_source
delete from sources where id = :source

-- stamp_source
update sources set crawl_time = :now, updated_at = :now where id = :source

-- set_mark
update sources set mark = :mark where id = :source

-- mark_graph
update sources set graph_changed = :changed where id = :source

-- mark_frontier
update sources set frontier_open = :open, rules_seen = :rules_seen where id = :source

-- oldest_checks
select p.source_id, min(case when p.listed = 1 and s.told_at > p.checked_at then s.told_at else p.checked_at end) as oldest
from pages p join sources s on s.id = p.source_id where p.status = 'active' group by p.source_id

-- source_numbers
select n.pages, n.errors,
    (select count(*) from pages where source_id = :source and doubt is not null and status <> 'deleted') as doubtful,
    (select count(*) from chunks c join pages p on p.id = c.page_id where p.source_id = :source) as chunks,
    (select count(*) from links where source_id = :source) as links,
    (
        select min(case when p.listed = 1 and s.told_at > p.checked_at then s.told_at else p.checked_at end)
        from pages p join sources s on s.id = p.source_id where p.source_id = :source and p.status = 'active'
    ) as oldest_check
from (
    select count(case when status not in ('deleted', 'redirect', 'error', 'pending') then 1 end) as pages,
        count(case when status = 'error' then 1 end) as errors
    from pages where source_id = :source
) n

-- open_frontier
update sources set frontier_open = 1 where id = :source

-- page_that_was_read
select id from pages where source_id = :source and last_scraped is not null limit 1
