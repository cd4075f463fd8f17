-- retitle_chunk
update chunks set title = :title, terms = :terms where id = :chunk

-- insert_chunk
insert into chunks (
    page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at
)
values (
    :page, :sort_order, :title, :heading, :content, :terms, :metadata, :config, :whole, :text_hash, :now
)
