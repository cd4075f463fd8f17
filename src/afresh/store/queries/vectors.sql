-- notice
select told_at from notices where name = :name

-- record_notice
insert into notices (name, told_at) values (:name, :now) on conflict (name) do nothing

-- model_by_name
select id, name, dimensions, serving from models where name = :name

-- serving_model
select id, name, dimensions, serving from models where serving = 1

-- add_model
insert into models (name, dimensions, serving, created_at)
select :name, :dimensions,
    case when exists (select 1 from models where serving = 1) or exists (select 1 from chunks) then 0 else 1 end, :now
where true
on conflict (name) do nothing

-- known_vectors
select text_hash from vectors
where model_id = (select id from models where name = :name) and text_hash in {list hashes}

-- leave_vectors_of_pages
update vectors set used_at = :now
where model_id in (select id from models) and text_hash in (select text_hash from chunks where page_id in {list pages})

-- forget_vectors
delete from vectors
where used_at < :before and not exists (select 1 from runs where state = 'running' and mode <> 'sync')
    and not exists (select 1 from chunks c where c.text_hash = vectors.text_hash)
returning id, model_id

-- unembedded
select c.id, {text c.content} as content, c.metadata, c.text_hash
from chunks c join pages p on p.id = c.page_id
where c.id > :after and c.whole = 1 and (:source is null or p.source_id = :source)
    and not exists (select 1 from vectors v where v.model_id = :model and v.text_hash = c.text_hash)
order by c.id limit :limit

-- lacks_vectors
select 1 as lacks from chunks c
where not exists (select 1 from vectors v where v.model_id = :model and v.text_hash = c.text_hash) limit 1

-- unembedded_number
select count(*) as missing from chunks c
where not exists (select 1 from vectors v where v.model_id = :model and v.text_hash = c.text_hash)

-- serve_model
update models set serving = 1 where id = :model

-- drop_other_models
delete from models where id <> :model
