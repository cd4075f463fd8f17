-- copy_chunks
insert into chunks (page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at)
select r.page, c.sort_order, c.title, c.heading, c.content, c.terms, c.metadata, c.config, c.whole, c.text_hash, c.created_at
from {rows target page} r join chunks c on c.page_id = r.target
