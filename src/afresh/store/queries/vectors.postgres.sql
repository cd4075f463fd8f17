-- model_and_newest
select m.id, m.dimensions, (select coalesce(max(id), 0) from chunks) as chunk, (select coalesce(max(id), 0) from vectors) as vector
from models m where m.name = :name

-- keep_vector
insert into vectors (model_id, text_hash, vector, used_at)
select r.model, r.text_hash, r.vector::halfvec, r.now from {rows model text_hash vector now} r
on conflict (model_id, text_hash) do update set used_at = excluded.used_at

-- nearest
select c.id as chunk, -(v.vector <#> :vector::halfvec) as likeness
from vectors v join chunks c on c.text_hash = v.text_hash
where v.model_id = :model and (:pages is null or c.page_id in {list pages})
order by 2 desc, 1 limit :limit

-- likeness
select c.id as chunk, -(v.vector <#> :vector::halfvec) as likeness
from chunks c join vectors v on v.model_id = :model and v.text_hash = c.text_hash
where c.id in {list chunks}
order by 2 desc, 1

-- vectors_of
select v.vector::real[] as vector
from chunks c join vectors v on v.model_id = :model and v.text_hash = c.text_hash
join unnest(:chunks) with ordinality as asked (chunk, place) on asked.chunk = c.id
order by asked.place

-- middle
select avg(few.vector)::real[] as vector
from (select vector from vectors where model_id = :model order by id desc limit 5000) few

-- nearest_by_index
select chunk, likeness from nearest_by_index(:model, :dimensions, :vector, :pages, :limit)

-- near_index
select i.indisvalid as ready from pg_index i where i.indexrelid = to_regclass('vectors_near_' || :model)

-- many_vectors
select m.id, m.dimensions, (
    select count(*) from (select 1 from vectors v where v.model_id = m.id limit :most) few
) as number
from models m where m.serving = 1
