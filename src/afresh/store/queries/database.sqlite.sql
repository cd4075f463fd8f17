-- integrity
pragma quick_check(1)

-- not_indexed
select
    (select count(*) from chunks where config = 'english') - (select count(*) from chunks_english_docsize)
        as english,
    (select count(*) from chunks where config <> 'english') - (select count(*) from chunks_simple_docsize)
        as simple

-- check_english
insert into chunks_english (chunks_english) values ('integrity-check')

-- check_simple
insert into chunks_simple (chunks_simple) values ('integrity-check')
