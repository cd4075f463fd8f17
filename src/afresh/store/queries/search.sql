-- configs
with recursive each_one (config) as (
    select min(config) from chunks
    union all
    select (select min(config) from chunks where config > each_one.config) from each_one where config is not null
)
select config from each_one where config is not null

-- count_chunks
select count(*) as number from chunks where page_id in {list pages}

-- chunks_within
select id from chunks where page_id in {list pages}

-- pages_of
select id from pages where source_id in {list sources}

-- pages_within
select id, url from pages
where content_hash is not null and (:sources is null or source_id in {list sources})
    and (:language is null or lower(language) = lower(:language) or lower(language) like lower(:language) || '-%')
    and (:changed_after is null or changed_at >= :changed_after)
    and (
        :checked_after is null
        or (checked_at >= :checked_after and (observed_at >= :checked_after or last_seen >= :checked_after))
        or (listed = 1 and source_id in (select id from sources where told_at >= :checked_after))
    )

-- chunk_pages
select c.id as chunk, c.page_id as page, c.sort_order as "order", case when c.whole = 1 then {text c.content} end as content,
    c.metadata, p.source_id, p.content_hash, p.url, coalesce(nullif(p.title, ''), p.url) as title, p.depth, p.language,
    p.checked_at, p.observed_at, p.last_seen, p.crawl_time, p.changed_at, p.listed, s.told_at, s.told_run_at,
    s.name as source, nullif(s.version, '') as version
from chunks c join pages p on p.id = c.page_id join sources s on s.id = p.source_id
where c.id in {list chunks}

-- page_chunks
select page_id, {text content} as content, metadata, text_hash from chunks where page_id in {list pages} order by page_id, sort_order

-- same_content
select source_id, content_hash, url from pages where content_hash in {list hashes} order by depth, id

-- newest
select coalesce(max(id), 0) as chunk from chunks
