-- link_row
select id, source_id, url, score, comment from links where id = :link {for update}

-- remove_link
delete from page_links where link_id = :link

-- link_records
select l.id, l.source_id, l.url, l.score, l.comment from links l
where (:everywhere = 1 or l.source_id in {list sources})
    and exists (select 1 from page_links e where e.link_id = l.id)
    and (:page is null or l.id in (select e.link_id from page_links e where e.page_id = :page))
    and (:url is null or l.url = :url)
    and (:least is null or l.score >= :least)
    and (:keyword is null or exists (
        select 1 from link_keywords k where k.link_id = l.id and k.keyword = :keyword
    ))
    and (
        :after is null or coalesce(l.score, 0) < :after_score
        or (coalesce(l.score, 0) = :after_score and (l.url > :after_url or (l.url = :after_url and l.id > :after)))
    )
order by coalesce(l.score, 0) desc, l.url, l.id
limit :limit

-- link_record
select l.id, l.source_id, l.url, l.score, l.comment from links l
where l.id = :link and exists (select 1 from page_links e where e.link_id = l.id)

-- best_links
select l.id, l.source_id, l.url, l.score, l.comment from links l
where l.source_id = :source and exists (select 1 from page_links e where e.link_id = l.id)
    and (:least is null or l.score >= :least)
    and (:keyword is null or exists (
        select 1 from link_keywords k where k.link_id = l.id and k.keyword = :keyword
    ))
    and (
        :after is null or coalesce(l.score, 0) < :after_score
        or (coalesce(l.score, 0) = :after_score and (l.url > :after_url or (l.url = :after_url and l.id > :after)))
    )
order by coalesce(l.score, 0) desc, l.url, l.id
limit :limit

-- places_of_link
select e.page_id, f.url, f.title, e.text, max(f.crawl_time) over () as crawl_time
from (select page_id, text from page_links where link_id = :link order by page_id limit :limit) e
join pages f on f.id = e.page_id
order by f.depth, f.url limit :most

-- count_places
select count(*) as places from page_links where link_id = :link

-- upsert_link
insert into links (source_id, url, admitted, crawl_time)
select r.source, r.url, r.admitted, r.crawl_time from {rows source url admitted crawl_time} r
where true
on conflict (source_id, url) do update set admitted = excluded.admitted where excluded.admitted > links.admitted

-- delete_page_links
delete from page_links where page_id in {list pages}

-- insert_page_link
insert into page_links (page_id, link_id, position, text, follow)
select r.page, r.link, r.position, r.text, r.follow from {rows page link position text follow} r
where true
on conflict (page_id, link_id) do nothing

-- link_ids
select id, url from links where source_id = :source and url in {list urls}

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

-- links_to
select s.*, f.url as page, f.depth as page_depth, e.follow, l.admitted from links l
join sources s on s.id = l.source_id join page_links e on e.link_id = l.id join pages f on f.id = e.page_id
where l.url = :url and (:source is null or l.source_id = :source)
order by f.depth, e.follow desc, f.url limit 1

-- links
select l.id, l.url, l.score, l.comment from links l
where l.source_id = :source and exists (select 1 from page_links e where e.link_id = l.id)
    and (:on_page is null or l.id in (
        select e.link_id from page_links e join pages f on f.id = e.page_id
        where f.source_id = :source and f.url = :on_page
    ))
    and (:least is null or l.score >= :least)
    and (:keyword is null or exists (
        select 1 from link_keywords k where k.link_id = l.id and k.keyword = :keyword
    ))
order by coalesce(l.score, 0) desc, l.url
limit :limit

-- texts_of_links
select e.link_id, e.text, count(*) as pages, max(f.crawl_time) as crawl_time
from page_links e join pages f on f.id = e.page_id
where e.link_id in {list links} group by e.link_id, e.text

-- pages_of_links
select link_id, url from (
    select e.link_id, f.url, row_number() over (partition by e.link_id order by f.depth, f.url) as place
    from page_links e join pages f on f.id = e.page_id where e.link_id in {list links}
) placed
where place <= :most order by link_id, place

-- mark_frontier
update sources set frontier_open = :open, rules_seen = :rules_seen where id = :source

-- links_of_source
select l.id, l.url, l.admitted, case when l.admitted = 0 then (
    select f.url from page_links e join pages f on f.id = e.page_id
    where e.link_id = l.id and e.follow = 1 order by f.depth, f.id limit 1
) end as found_on
from links l where l.source_id = :source
order by l.id

-- addresses
select url, listed from pages where source_id = :source
union all
select l.url, 0 from links l
where l.source_id = :source and l.admitted = 1
    and not exists (select 1 from pages p where p.source_id = l.source_id and p.url = l.url)
    and exists (select 1 from page_links e where e.link_id = l.id and e.follow = 1)

-- left_out
select l.url from links l
where l.source_id = :source and l.admitted = 0
    and exists (select 1 from page_links e where e.link_id = l.id and e.follow = 1)

-- readmit_link
update links set admitted = :admitted where id = :link
