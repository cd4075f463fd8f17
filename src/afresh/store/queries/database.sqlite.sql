-- integrity
pragma quick_check(1)

-- not_indexed
select
    (select count(*) from chunks where config = 'english') - (select count(*) from chunks_english_docsize)
        as english,
    (select count(*) from chunks where config <> 'english') - (select count(*) from chunks_simple_docsize)
        as simple,
    (select count(*) from vectors where model_id in (select id from models where coded = 1))
        - (select coalesce(sum(length(places)), 0) from vector_blocks) as vectors

-- check_english
insert into chunks_english (chunks_english) values ('integrity-check')

-- check_simple
insert into chunks_simple (chunks_simple) values ('integrity-check')
