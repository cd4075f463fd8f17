alter table chunks drop column embedding;
create index chunks_by_text on chunks (text_hash, page_id);
