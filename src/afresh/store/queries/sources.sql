-- replace_rules
update sources set rules = :rules, policy = :policy, updated_at = :now where id = :source returning *

-- change_source
update sources set name = :name, version = :version, url = :url, operator_url = :operator_url,
    mark = case when url = :url then mark else null end, updated_at = :now
where id = :source returning *

-- give_up_runs_of_old_url
update runs set state = 'failed', finished_at = :now, error = 'given up: the URL of the source was changed'
where source_id = :source and mode <> 'sync' and state in ('queued', 'running', 'cancelled')

-- stored_pages
select id, url, depth, etag, last_modified, size, mtime_ns, validators_url, checked_at,
    recipe = :recipe and failures = 0 and gone_count = 0 and doomed_by is null and doubt is null and moved_to is null
        and (content_hash is not null or etag is not null or size is not null) as sound
from pages where source_id = :source and status not in ('deleted', 'redirect')

-- stored_below
select url, depth from pages
where source_id = :source and status not in ('deleted', 'redirect')
    and (url = :url or (url >= :below and url < :beyond))
order by url

-- with_problems
select url, depth from pages
where source_id = :source and status not in ('deleted', 'redirect') and not (
    coalesce(recipe, '') = :recipe and failures = 0 and gone_count = 0 and doomed_by is null and doubt is null and moved_to is null
        and (content_hash is not null or etag is not null or size is not null)
)

-- tell_unchanged
update sources set told_at = :now, told_run_at = :started where id = :source

-- queued_with_content
select count(*) as number from page_crawls c join pages p on p.id = c.page_id
where c.run_id = :run and c.outcome is null and p.content_hash is not null

-- listed_among
select id from pages where source_id = :source and listed = 1 and id in {list others} order by id

-- listing_attempt
select id, unchanged from page_crawls where run_id = :run and unchanged is not null

-- insert_listing_attempt
insert into page_crawls (
    run_id, url, domain, scheduled_for, completed_at, outcome, reason, created_at, updated_at, unchanged, untold
) values (:run, :url, :domain, :now, :now, 'not_modified', :reason, :now, :now, :number, :untold)

-- extend_listing_attempt
update page_crawls
set completed_at = :now, updated_at = :now, reason = :reason, unchanged = :number, untold = :untold
where id = :crawl

-- believe_listing
update pages
set crawl_time = :started, last_seen = :started, checked_at = :now
where source_id = :source and content_hash is not null and status not in ('deleted', 'redirect')
    and coalesce(queued_run, 0) <> :run and (crawl_time is null or crawl_time <> :started)
    and id not in {list others}

-- remember_page_numbers_of
insert into page_numbers (id, last) select 1, max(p.id) from pages p where p.source_id = :source having max(p.id) is not null
on conflict (id) do update
set last = case when excluded.last > page_numbers.last then excluded.last else page_numbers.last end

-- keep_run_of_trial
insert into unkept_runs (
    id, source_id, name, version, kind, url, mode, state, full_look, worker, queued, known, counts, notes, error,
    started_at, finished_at
)
select r.id, s.id, s.name, s.version, s.kind, s.url, r.mode, r.state, r.full_look, r.worker, r.queued, r.known,
    r.counts, r.notes, r.error, r.started_at, r.finished_at
from runs r join sources s on s.id = r.source_id
where r.id = :run and s.trial = 1
    and not exists (select 1 from pages p where p.source_id = s.id and p.last_scraped is not null)
    and not exists (
        select 1 from runs o where o.source_id = s.id and o.id <> r.id and o.state in ('queued', 'running')
    )

-- forget_unkept_runs
delete from unkept_runs where started_at < :before

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

-- set_mark
update sources set mark = :mark where id = :source

-- mark_graph
update sources set graph_changed = :changed where id = :source

-- open_frontier
update sources set frontier_open = 1 where id = :source

-- page_that_was_read
select id from pages where source_id = :source and last_scraped is not null limit 1

-- set_listed
update pages set listed = 1 where source_id = :source and listed = 0 and url in {list urls}

-- clear_listed
update pages set listed = 0 where source_id = :source and listed = 1 and url not in {list urls}

-- listed_pages
select count(*) as number from pages p join sources s on s.id = p.source_id
where p.source_id = :source and p.listed = 1 and p.url <> s.url

-- former_roots
select url, validators_url from pages
where source_id = :source and depth = 0 and (moved_to is not null or url = :root)
