-- model_and_newest
select m.id, m.dimensions, m.coded, (select coalesce(max(id), 0) from chunks) as chunk,
    (select coalesce(max(id), 0) from vectors) as vector
from models m where m.name = :name

-- keep_vector
insert into vectors (model_id, text_hash, vector, used_at) values (:model, :text_hash, :vector, :now)
on conflict (model_id, text_hash) do update set used_at = excluded.used_at

-- models_and_newest
select id, dimensions, coded, (select coalesce(max(id), 0) from vectors) as vector from models

-- mark_coded
update models set coded = 1 where id = :model

-- newest_vector
select max(id) as newest from vectors

-- vectors_after
select id, vector from vectors where +model_id = :model and id > :after order by id

-- vectors_of_blocks
select v.id, v.vector
from {list blocks} b cross join vectors v on v.id between b.value * 256 and b.value * 256 + 255
where +v.model_id = :model
order by v.id

-- drop_blocks
delete from vector_blocks where model_id = :model and block in {list blocks}

-- add_block
insert into vector_blocks (model_id, block, places, codes, middle) values (:model, :number, :places, :codes, :middle)

-- blocks_between
select block as number, places, codes, middle from vector_blocks
where model_id = :model and block >= :first and block < :full
order by block

-- vectors_by_id
select id, vector from vectors where id in {list vectors}

-- chunks_of_vectors
select c.id as chunk, v.id
from vectors v cross join chunks c on c.text_hash = v.text_hash
where v.id in {list vectors}

-- chunks_of_vectors_within
select c.id as chunk, v.id
from vectors v cross join chunks c on c.text_hash = v.text_hash
where v.id in {list vectors} and +c.page_id in {list pages}

-- vectors_of_pages
select distinct v.id
from chunks c cross join vectors v on v.model_id = :model and v.text_hash = c.text_hash
where c.page_id in {list pages}
order by v.id

-- vectors_of_chunks
select c.id as chunk, v.vector
from chunks c cross join vectors v on v.model_id = :model and v.text_hash = c.text_hash
where c.id in {list chunks}
