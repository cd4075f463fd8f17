-- match_english
with asked as materialized (
    select match::tsquery as query, worth from unnest(:matches, :worth) as given (match, worth)
)
select c.id as chunk, -sum(a.worth * ts_rank('{0.53, 0.53, 0.9, 1}', c.words, a.query, 1)) as score
from chunks c cross join asked a
where c.config = 'english' and c.words @@ :match::tsquery
group by c.id order by 2, 1 limit :limit

-- match_within_english
with asked as materialized (
    select match::tsquery as query, worth from unnest(:matches, :worth) as given (match, worth)
)
select c.id as chunk, -sum(a.worth * ts_rank('{0.53, 0.53, 0.9, 1}', c.words, a.query, 1)) as score
from chunks c cross join asked a
where c.config = 'english' and c.words @@ :match::tsquery and c.page_id in {list pages}
group by c.id order by 2, 1 limit :limit

-- score_english
with asked as materialized (
    select match::tsquery as query, worth from unnest(:matches, :worth) as given (match, worth)
)
select c.id as chunk, -sum(a.worth * ts_rank('{0.53, 0.53, 0.9, 1}', c.words, a.query, 1)) as score
from chunks c cross join asked a
where c.config = 'english' and c.words @@ :match::tsquery and c.id in {list chunks}
group by c.id

-- count_english
select count(*) as number from (
    select 1 from chunks where config = 'english' and words @@ :match::tsquery limit :most
) found

-- match_simple
with asked as materialized (
    select match::tsquery as query, worth from unnest(:matches, :worth) as given (match, worth)
)
select c.id as chunk, -sum(a.worth * ts_rank('{0.53, 0.53, 0.9, 1}', c.words, a.query, 1)) as score
from chunks c cross join asked a
where c.config <> 'english' and c.words @@ :match::tsquery
group by c.id order by 2, 1 limit :limit

-- match_within_simple
with asked as materialized (
    select match::tsquery as query, worth from unnest(:matches, :worth) as given (match, worth)
)
select c.id as chunk, -sum(a.worth * ts_rank('{0.53, 0.53, 0.9, 1}', c.words, a.query, 1)) as score
from chunks c cross join asked a
where c.config <> 'english' and c.words @@ :match::tsquery and c.page_id in {list pages}
group by c.id order by 2, 1 limit :limit

-- score_simple
with asked as materialized (
    select match::tsquery as query, worth from unnest(:matches, :worth) as given (match, worth)
)
select c.id as chunk, -sum(a.worth * ts_rank('{0.53, 0.53, 0.9, 1}', c.words, a.query, 1)) as score
from chunks c cross join asked a
where c.config <> 'english' and c.words @@ :match::tsquery and c.id in {list chunks}
group by c.id

-- count_simple
select count(*) as number from (
    select 1 from chunks where config <> 'english' and words @@ :match::tsquery limit :most
) found

-- texts
select greatest(
    (select reltuples::bigint from pg_class where oid = to_regclass('chunks')),
    (select count(*) from (select 1 from chunks limit 5000) few)
) as number
