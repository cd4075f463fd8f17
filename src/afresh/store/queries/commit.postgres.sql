-- insert_page
insert into pages (source_id, url, depth, created_run, created_at, updated_at)
select r.source, r.url, r.depth, r.run, r.now, r.now from {rows source url depth run now} r
where true
on conflict (source_id, url) do nothing

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

-- insert_change
insert into changes (source_id, page_id, url, kind, run_id, at, old_hash, new_hash, diff, moved_to)
select r.source, r.page, r.url, r.kind, r.run, r.now, r.old_hash, r.new_hash, r.diff, r.moved_to
from {rows source page url kind run now old_hash new_hash diff moved_to} r

-- copy_chunks
insert into chunks (page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, words, created_at)
select r.page, c.sort_order, c.title, c.heading, c.content, c.terms, c.metadata, c.config, c.whole, c.text_hash, c.words, c.created_at
from {rows target page} r join chunks c on c.page_id = r.target
