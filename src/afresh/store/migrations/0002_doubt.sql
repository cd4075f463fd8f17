alter table pages add column crashes integer not null default 0;
alter table pages add column doubt text;
alter table pages add column doubt_hash text;
alter table pages add column doubt_run integer;
create index pages_doubt on pages (source_id) where doubt is not null;
create index pages_content on pages (content_hash) where content_hash is not null;

alter table documents add column sketch text;
alter table documents add column length integer;
alter table documents add column former text;
create index documents_alike on documents (substr(sketch, 1, 8));
