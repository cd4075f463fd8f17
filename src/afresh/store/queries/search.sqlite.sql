-- match_english
select rowid as chunk, bm25(chunks_english, 8.0, 4.0, 1.0) as score from chunks_english
where chunks_english match :match
order by 2, 1 limit :limit

-- match_within_english
select c.id as chunk, bm25(chunks_english, 8.0, 4.0, 1.0) as score
from chunks_english f join chunks c on c.id = f.rowid
where chunks_english match :match and c.page_id in {list pages}
order by 2, 1 limit :limit

-- match_inside_english
select rowid as chunk, bm25(chunks_english, 8.0, 4.0, 1.0) as score from chunks_english
where chunks_english match :match and substr(:inside, rowid, 1) = x'01'
order by 2, 1 limit :limit

-- score_english
select rowid as chunk, bm25(chunks_english, 8.0, 4.0, 1.0) as score from chunks_english
where chunks_english match :match and +rowid in {list chunks}

-- count_english
select count(*) as number from (select 1 from chunks_english where chunks_english match :match limit :most) found

-- match_simple
select rowid as chunk, bm25(chunks_simple, 8.0, 4.0, 1.0) as score from chunks_simple
where chunks_simple match :match
order by 2, 1 limit :limit

-- match_within_simple
select c.id as chunk, bm25(chunks_simple, 8.0, 4.0, 1.0) as score
from chunks_simple f join chunks c on c.id = f.rowid
where chunks_simple match :match and c.page_id in {list pages}
order by 2, 1 limit :limit

-- match_inside_simple
select rowid as chunk, bm25(chunks_simple, 8.0, 4.0, 1.0) as score from chunks_simple
where chunks_simple match :match and substr(:inside, rowid, 1) = x'01'
order by 2, 1 limit :limit

-- score_simple
select rowid as chunk, bm25(chunks_simple, 8.0, 4.0, 1.0) as score from chunks_simple
where chunks_simple match :match and +rowid in {list chunks}

-- count_simple
select count(*) as number from (select 1 from chunks_simple where chunks_simple match :match limit :most) found
