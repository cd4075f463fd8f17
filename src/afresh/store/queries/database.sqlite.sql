-- integrity
pragma quick_check(1)

-- not_indexed
select
    (select count(*) from chunks where config = 'english') - (select count(*) from chunks_english_docsize)
        as english,
    (select count(*) from chunks where config <> 'english') - (select count(*) from chunks_simple_docsize)
        as simple,
    (select count(*) from vectors v where v.model_id in (select id from models where coded = 1) and v.id / 256 < l.block)
        - (select coalesce(sum(length(b.places)), 0) from vector_blocks b where b.block < l.block) as vectors
from (select max(id) / 256 as block from vectors) l

-- check_english
insert into chunks_english (chunks_english) values ('integrity-check')

-- check_simple
insert into chunks_simple (chunks_simple) values ('integrity-check')
