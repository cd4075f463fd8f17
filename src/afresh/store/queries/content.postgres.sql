-- retitle_chunk
update chunks
set title = r.title, terms = r.terms, words = r.words::tsvector || ts_filter(chunks.words, '{b,d}')
from {rows chunk title terms words} r
where chunks.id = r.chunk

-- insert_chunk
insert into chunks (
    page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, words, created_at
)
select r.page, r.sort_order, r.title, r.heading, r.content, r.terms, r.metadata, r.config, r.whole, r.text_hash,
    r.words::tsvector, r.now
from {rows page sort_order title heading content terms metadata config whole text_hash words now} r

-- upsert_document
insert into documents as d (page_id, markdown, sketch, length, former, former_title, former_at)
select r.page, r.markdown, r.sketch, r.length,
    case
        when r.markdown is null or o.former = r.markdown then null
        when o.is_kept then o.markdown
        else o.former
    end,
    case when o.is_kept then r.former_title else o.former_title end,
    case when o.is_kept then r.now else o.former_at end
from {rows page markdown sketch length flagged former_title now} r
left join lateral (
    select e.*, r.flagged = 1 and e.markdown not in ('', r.markdown)
        and length(e.markdown) >= coalesce(length(e.former), 0) / 20 as is_kept
    from documents e where e.page_id = r.page
) o on true
on conflict (page_id) do update
set former = excluded.former, former_title = excluded.former_title, former_at = excluded.former_at, markdown = excluded.markdown, sketch = excluded.sketch, length = excluded.length,
    summary = null
