-- forget_diffs
update changes set diff = null where page_id in {list pages} and diff is not null

-- chunks_of
select id, page_id, sort_order, title, config, whole, terms is not null as analysed, {text content} as content, text_hash
from chunks where page_id in {list pages}

-- terms_of
select id, page_id, config, terms from chunks where page_id in {list pages}

-- delete_chunks
delete from chunks where id in {list chunks}

-- move_chunk
update chunks set sort_order = r.sort_order from {rows chunk sort_order} r where chunks.id = r.chunk

-- outdated_pages
select p.*, {text d.markdown} as markdown from pages p join documents d on d.page_id = p.id
where p.id > :after and p.content_hash is not null and d.markdown is not null
    and coalesce(p.chunker, '') <> :chunker and (:source is null or p.source_id = :source)
order by p.id limit :limit

-- count_outdated
select count(*) as pages, coalesce(sum(case when d.markdown is null then 1 else 0 end), 0) as without_text
from pages p join documents d on d.page_id = p.id
where p.content_hash is not null and coalesce(p.chunker, '') <> :chunker
    and (:source is null or p.source_id = :source)

-- hashes_of
select id, content_hash from pages where id in {list pages} {for update}

-- restore_document
update documents
set markdown = :markdown, sketch = :sketch, length = :length, former = null, former_title = null, former_at = null,
    summary = null
where page_id = :page

-- restore_page
update pages
set title = :title, content_hash = :content_hash, refused_hash = :refused_hash, doubt = :doubt, doubt_hash = null,
    doubt_run = null, etag = null, last_modified = null, size = null, mtime_ns = null, validators_url = null,
    chunker = :chunker, changed_at = :now, updated_at = :now
where id = :page

-- mark_recut
update pages set chunker = :chunker, updated_at = :now where id in {list pages}

-- leave_vectors
update vectors set used_at = :now
where model_id in (select id from models) and text_hash in (select text_hash from chunks where id in {list chunks})
