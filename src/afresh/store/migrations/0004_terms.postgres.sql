alter table chunks add column words tsvector not null default '';
create index chunks_english on chunks using gin (words) where config = 'english';
create index chunks_simple on chunks using gin (words) where config <> 'english';
