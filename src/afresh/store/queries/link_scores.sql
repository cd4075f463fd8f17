-- links_seal
select links_scored from sources where id = :source

-- seal_links
update sources set links_scored = :seal where id = :source

-- unseal_links
update sources set links_scored = '' where id = :source and links_scored <> ''

-- unasked_links
select distinct l.id, l.url, e.text, a.recipe, a.keywords
from links l join page_links e on e.link_id = l.id
left join link_asked a on a.link_id = l.id and a.text = e.text
where l.source_id = :source and (a.link_id is null or a.recipe <> :recipe or a.keywords <> :keywords)
order by l.id, e.text

-- unasked_among
select distinct l.id, l.url, e.text, a.recipe, a.keywords
from links l join page_links e on e.link_id = l.id
left join link_asked a on a.link_id = l.id and a.text = e.text
where l.source_id = :source and l.url in {list urls}
    and (a.link_id is null or a.recipe <> :recipe or a.keywords <> :keywords)
order by l.id, e.text

-- unasked_counts
select recipe, keywords, count(*) as pairs from (
    select distinct l.id, e.text, a.recipe, a.keywords
    from links l join page_links e on e.link_id = l.id
    left join link_asked a on a.link_id = l.id and a.text = e.text
    where l.source_id = :source and (a.link_id is null or a.recipe <> :recipe or a.keywords <> :keywords)
) unasked
group by recipe, keywords

-- asked_count
select count(*) as pairs from link_asked a join links l on l.id = a.link_id where l.source_id = :source

-- answers
select a.*, l.url from link_asked a join links l on l.id = a.link_id where l.source_id = :source

-- answers_among
select a.*, l.url from link_asked a join links l on l.id = a.link_id
where l.source_id = :source and l.url in {list urls}

-- keep_answer
insert into link_asked (link_id, text, recipe, keywords, answer, comment, asked_at)
select l.id, r.text, r.recipe, r.keywords, r.answer, r.comment, r.now
from {rows source url text recipe keywords answer comment now} r
join links l on l.source_id = r.source and l.url = r.url
where true
on conflict (link_id, text) do update
set recipe = excluded.recipe, keywords = excluded.keywords, answer = excluded.answer,
    comment = excluded.comment, asked_at = excluded.asked_at

-- forget_answers
delete from link_asked
where link_id in (select id from links where source_id = :source) and not exists (
    select 1 from page_links e where e.link_id = link_asked.link_id and e.text = link_asked.text
)

-- worths
select l.id, l.score, l.comment, k.keyword, k.score as keyword_score
from links l left join link_keywords k on k.link_id = l.id
where l.source_id = :source and l.score is not null

-- worths_among
select l.id, l.score, l.comment, k.keyword, k.score as keyword_score
from links l left join link_keywords k on k.link_id = l.id
where l.source_id = :source and l.score is not null and l.url in {list urls}

-- set_worth
update links set score = r.score, comment = r.comment from {rows link score comment} r where links.id = r.link

-- drop_keywords
delete from link_keywords where link_id in {list links}

-- insert_keyword
insert into link_keywords (link_id, keyword, score)
select r.link, r.keyword, r.score from {rows link keyword score} r

-- keywords_of_links
select link_id, keyword, score from link_keywords where link_id in {list links}
order by link_id, score desc, keyword

-- scored_links
select url, score from links where source_id = :source and score > 0

-- counts_since
select counts from runs where state = 'running' or coalesce(finished_at, started_at) > :since
