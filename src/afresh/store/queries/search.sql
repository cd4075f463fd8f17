-- configs
with recursive each_one (config) as (
    select min(config) from chunks
    union all
    select (select min(config) from chunks where config > each_one.config) from each_one where config is not null
)
select config from each_one where config is not null

-- search_english
select c.id, c.page_id, p.source_id, p.content_hash, bm25(chunks_english, 8.0, 4.0, 1.0) as rank
from chunks_english f join chunks c on c.id = f.rowid join pages p on p.id = c.page_id
where chunks_english match :match
    and (:source is null or p.source_id = :source)
    and (:language is null or lower(p.language) = lower(:language) or p.language like :language || '-%')
order by rank, p.depth, p.id limit :limit

-- search_simple
select c.id, c.page_id, p.source_id, p.content_hash, bm25(chunks_simple, 8.0, 4.0, 1.0) as rank
from chunks_simple f join chunks c on c.id = f.rowid join pages p on p.id = c.page_id
where chunks_simple match :match
    and (:source is null or p.source_id = :source)
    and (:language is null or lower(p.language) = lower(:language) or p.language like :language || '-%')
order by rank, p.depth, p.id limit :limit

-- passages_english
select rowid as id, snippet(chunks_english, 2, char(2), char(3), '…', 60) as text
from chunks_english where chunks_english match :match and rowid in {list chunks}

-- passages_simple
select rowid as id, snippet(chunks_simple, 2, char(2), char(3), '…', 60) as text
from chunks_simple where chunks_simple match :match and rowid in {list chunks}

-- chunk_pages
select c.id, c.content, c.metadata, c.config, c.terms is not null as analysed, p.source_id, p.content_hash, p.url, p.title, p.language, p.checked_at, p.changed_at,
    s.name as source_name, s.version as source_version, d.markdown is not null as has_body
from chunks c join pages p on p.id = c.page_id join sources s on s.id = p.source_id
left join documents d on d.page_id = p.id
where c.id in {list chunks}

-- same_content
select source_id, content_hash, url from pages where content_hash in {list hashes} order by depth, id
