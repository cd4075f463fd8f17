-- keep_vector
insert into vectors (model_id, text_hash, vector, used_at) values (:model, :text_hash, :vector, :now)
on conflict (model_id, text_hash) do update set used_at = excluded.used_at

-- vectors_after
select id, vector from vectors where model_id = :model and id > :after order by id

-- placed_vectors
select c.id as chunk, c.page_id as page, v.id as vector
from chunks c join vectors v on v.model_id = :model and v.text_hash = c.text_hash

-- placed_vectors_after
select c.id as chunk, c.page_id as page, v.id as vector
from chunks c join vectors v on v.model_id = :model and v.text_hash = c.text_hash
where c.id > :after

-- chunks_after
select count(*) as number from chunks where id > :after
