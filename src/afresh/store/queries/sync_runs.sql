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
