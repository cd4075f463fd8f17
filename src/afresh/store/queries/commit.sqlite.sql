-- insert_page
insert into pages (id, source_id, url, depth, created_run, created_at, updated_at)
select max(coalesce((select max(id) from pages), 0), coalesce((select last from page_numbers), 0)) + row_number() over (),
    r.source, r.url, r.depth, r.run, r.now, r.now from {rows source url depth run now} r
where true
on conflict (source_id, url) do nothing

-- retitle_chunk
update chunks set title = :title, terms = :terms where id = :chunk

-- insert_chunk
insert into chunks (
    page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at
)
values (
    :page, :sort_order, :title, :heading, :content, :terms, :metadata, :config, :whole, :text_hash, :now
)

-- upsert_document
insert into documents (page_id, markdown, sketch, length) values (:page, :markdown, :sketch, :length)
on conflict (page_id) do update
set former = case
        when :markdown is null or documents.former = :markdown then null
        when :flagged = 1 and documents.markdown not in ('', :markdown)
            and length(documents.markdown) >= coalesce(length(documents.former), 0) / 20 then documents.markdown
        else documents.former
    end,
    former_title = case
        when :flagged = 1 and documents.markdown not in ('', :markdown)
            and length(documents.markdown) >= coalesce(length(documents.former), 0) / 20 then :former_title
        else documents.former_title
    end,
    former_at = case
        when :flagged = 1 and documents.markdown not in ('', :markdown)
            and length(documents.markdown) >= coalesce(length(documents.former), 0) / 20 then :now
        else documents.former_at
    end,
    markdown = excluded.markdown, sketch = excluded.sketch, length = excluded.length, summary = null

-- insert_change
insert into changes (source_id, page_id, url, kind, run_id, at, old_hash, new_hash, diff, moved_to)
values (:source, :page, :url, :kind, :run, :now, :old_hash, :new_hash, :diff, :moved_to)

-- copy_chunks
insert into chunks (page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at)
select r.page, c.sort_order, c.title, c.heading, c.content, c.terms, c.metadata, c.config, c.whole, c.text_hash, c.created_at
from {rows target page} r join chunks c on c.page_id = r.target
