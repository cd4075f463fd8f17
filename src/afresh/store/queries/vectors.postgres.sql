-- model_and_newest
select m.id, m.dimensions, (select coalesce(max(id), 0) from vectors) as vector
from models m where m.name = :name

-- keep_vector
insert into vectors (model_id, text_hash, vector, used_at)
select r.model, r.text_hash, r.vector::halfvec, r.now from {rows model text_hash vector now} r
on conflict (model_id, text_hash) do update set used_at = excluded.used_at

-- nearest
select c.id as chunk, halfvec_send(v.vector) as vector
from vectors v join chunks c on c.text_hash = v.text_hash
where v.model_id = :model and (:pages is null or c.page_id in {list pages})
order by v.vector <#> :vector::halfvec, 1 limit :limit

-- vectors_of_chunks
select c.id as chunk, halfvec_send(v.vector) as vector
from chunks c join vectors v on v.model_id = :model and v.text_hash = c.text_hash
where c.id in {list chunks}

-- middle
select avg(few.vector)::real[] as vector
from (select vector from vectors where model_id = :model order by id desc limit 5000) few

-- nearest_by_index
select n.chunk, halfvec_send(v.vector) as vector
from nearest_by_index(:model, :dimensions, :vector, :pages, :limit) n join chunks c on c.id = n.chunk
    join vectors v on v.model_id = :model and v.text_hash = c.text_hash
order by n.likeness desc, 1

-- near_index
select i.indisvalid as ready from pg_index i where i.indexrelid = to_regclass('vectors_near_' || :model)

-- many_vectors
select m.id, m.dimensions, (
    select count(*) from (select 1 from vectors v where v.model_id = m.id limit :most) few
) as number
from models m where m.serving = 1
