-- store_id
select id from store_ids order by id limit 1

-- make_store_id
insert into store_ids (id) select :text where not exists (select 1 from store_ids)

-- sinks
select name, place, worker, audit, audited_at, resume_at, synced_at, error, failing_since from sinks order by name

-- add_sink
insert into sinks (name, place) values (:name, :place) on conflict (name) do nothing

-- sink
select name, place, worker, audit, audited_at, resume_at, synced_at, error, failing_since from sinks where name = :name {for update}

-- take_sink
update sinks
set worker = :worker, audit = case when place = :place and worker is null then audit else 1 end, place = :place
where name = :name

-- leave_sink
update sinks
set worker = null, audit = :audit, audited_at = coalesce(:at, audited_at), resume_at = :until, synced_at = :now, error = :error,
    failing_since = case when :error is not null then coalesce(failing_since, :now) end
where name = :name and worker = :worker

-- doubt_sink
update sinks set audit = 1 where name = :name

-- add_copies
insert into copies (sink, source_id, source, page_id, url, state, created_at, updated_at)
select :name, p.source_id, s.name || case when s.version = '' then '' else '@' || s.version end, p.id, p.url,
    'ready_for_indexing', :now, :now
from pages p join sources s on s.id = p.source_id
where p.source_id in {list sources} and p.content_hash is not null
    and not exists (select 1 from copies c where c.page_id = p.id and c.sink = :name)

-- count_uncopied
select count(*) as number from pages p
where p.source_id in {list sources} and p.content_hash is not null
    and not exists (select 1 from copies c where c.page_id = p.id and c.sink = :name)

-- pages_copied
select c.*, p.id as page, p.url as page_url, p.title, p.status as page_status, p.content_hash as page_hash
from pages p left join copies c on c.page_id = p.id and c.sink = :name
where p.source_id = :source and p.content_hash is not null and p.id > :after
    and (:state is null or :state = case
        when c.state = 'active' and c.held_hash = p.content_hash then 'active'
        when c.state in ('processing', 'error') and c.wanted_hash = p.content_hash then c.state
        else 'ready_for_indexing' end)
order by p.id limit :limit

-- add_orphan
insert into copies (sink, source_id, source, page_id, url, state, leftovers, created_at, updated_at)
values (:name, :source, :label, null, :url, 'deleted', :leftovers, :now, :now)

-- copies_of_sink
select c.*, p.status as page_status, case when p.source_id in {list sources} then p.content_hash end as page_hash
from copies c left join pages p on p.id = c.page_id
where c.sink = :name and c.id > :after and (:everything = 1 or c.source_id in {list others})
order by c.id limit :limit

-- copies_to_do
select c.*, p.status as page_status, case when p.source_id in {list sources} then p.content_hash end as page_hash
from copies c left join pages p on p.id = c.page_id
where c.sink = :name and c.id > :after and (:everything = 1 or c.source_id in {list others})
    and (
        c.putting = 1 or c.leftovers <> '[]' or c.former <> '[]'
        or case when p.source_id in {list sources} and p.content_hash is not null
            then c.state <> 'active' or c.remote_id is null or coalesce(c.held_hash, '') <> p.content_hash
            else c.remote_id is not null or c.state not in ('deleted', 'redirect') or c.page_id is null end
    )
order by c.id limit :limit

-- page_text
select p.content_hash as hash, p.url, p.title, p.language, {text d.markdown} as markdown
from pages p left join documents d on d.page_id = p.id
where p.id = :page and p.content_hash is not null

-- record_copy
update copies
set state = r.state, wanted_hash = r.wanted_hash, held_hash = r.held_hash, remote_id = r.remote_id,
    remote_name = r.remote_name, putting = r.putting, former = r.former, leftovers = r.leftovers,
    attempts = r.attempts, put_at = r.put_at, failed_at = r.failed_at, next_try_at = r.next_try_at,
    error = r.error, updated_at = r.now
from {rows copy state wanted_hash held_hash remote_id remote_name putting former leftovers attempts put_at failed_at next_try_at error now} r
where copies.id = r.copy

-- forget_copies
delete from copies
where sink = :name and page_id is null and putting = 0 and remote_id is null and former = '[]' and leftovers = '[]'

-- copies_of_pages
select c.*, p.status as page_status, p.content_hash as page_hash
from copies c join pages p on p.id = c.page_id
where c.page_id in {list pages} order by c.page_id, c.sink

-- pages_by_copies
select p.*, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id
where p.id > :after and {of sources}
    and (:status is not null or :everything = 1 or p.status not in ('deleted', 'redirect'))
    and (:status is null or :status = coalesce(case when p.content_hash is not null then (
        select case
            when max(w.weight) = 3 then 'error'
            when max(w.weight) = 2 or count(*) < :number then 'ready_for_indexing'
            when max(w.weight) = 1 then 'processing' end
        from (
            select case
                when c.state = 'active' and c.held_hash = p.content_hash then 0
                when c.state = 'processing' and c.wanted_hash = p.content_hash then 1
                when c.state = 'error' and c.wanted_hash = p.content_hash then 3
                else 2 end as weight
            from copies c where c.page_id = p.id and c.sink in {list sinks}
        ) w
    ) end, p.status))
    and (:doubtful = 0 or p.doubt is not null)
    and (:language is null or p.language = :language)
    and (:depth is null or p.depth = :depth)
    and (:text is null or {holds p.url} or {holds p.title})
order by p.id
limit :limit

-- close_dead_syncs
update runs set state = 'failed', finished_at = :now, error = :error
where source_id = :source and mode = 'sync' and state = 'running'
    and (worker = :worker or worker not in (select name from workers))

-- record_document
insert into sync_documents (run_id, copy_id, sink, url, outcome, state, remote_id, remote_name, error, at)
select r.run, r.copy, r.sink, r.url, r.outcome, r.state, r.remote_id, r.remote_name, r.error, r.now
from {rows run copy sink url outcome state remote_id remote_name error now} r
where true
on conflict (run_id, copy_id) do update
set outcome = case when excluded.outcome in ('verified', 'waiting') then sync_documents.outcome else excluded.outcome end,
    state = excluded.state, remote_id = excluded.remote_id, remote_name = excluded.remote_name, error = excluded.error,
    at = excluded.at

-- count_documents
select outcome, count(*) as number from sync_documents where run_id = :run group by outcome

-- documents_of_run
select c.*, p.status as page_status, p.content_hash as page_hash, d.copy_id, d.sink as document_sink, d.url as document_url,
    d.outcome, d.state as document_state, d.remote_id as document_id, d.remote_name as document_name,
    d.error as document_error, d.at
from sync_documents d left join copies c on c.id = d.copy_id left join pages p on p.id = c.page_id
where d.run_id = :run and d.copy_id > :after and (:outcome is null or d.outcome = :outcome)
order by d.copy_id limit :limit
