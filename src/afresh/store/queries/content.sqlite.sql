-- retitle_chunk
update chunks set title = :title, terms = :terms where id = :chunk

-- insert_chunk
insert into chunks (
    page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at
)
values (
    :page, :sort_order, :title, :heading, deflated(:content), :terms, :metadata, :config, :whole, :text_hash, :now
)

-- upsert_document
insert into documents (page_id, markdown, sketch, length) values (:page, deflated(:markdown), :sketch, :length)
on conflict (page_id) do update
set former = case
        when :markdown is null or inflated(documents.former) = :markdown then null
        when :flagged = 1 and inflated(documents.markdown) not in ('', :markdown)
            and length(inflated(documents.markdown)) >= coalesce(length(inflated(documents.former)), 0) / 20 then documents.markdown
        else documents.former
    end,
    former_title = case
        when :flagged = 1 and inflated(documents.markdown) not in ('', :markdown)
            and length(inflated(documents.markdown)) >= coalesce(length(inflated(documents.former)), 0) / 20 then :former_title
        else documents.former_title
    end,
    former_at = case
        when :flagged = 1 and inflated(documents.markdown) not in ('', :markdown)
            and length(inflated(documents.markdown)) >= coalesce(length(inflated(documents.former)), 0) / 20 then :now
        else documents.former_at
    end,
    markdown = excluded.markdown, sketch = excluded.sketch, length = excluded.length, summary = null
