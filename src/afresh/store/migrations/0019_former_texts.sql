alter table documents add column former_at {time};
alter table documents add column former_title text;
alter table pages add column refused_hash text;
update documents set former_at = (select p.changed_at from pages p where p.id = documents.page_id)
where former is not null;
create index documents_former on documents (former_at) where former is not null;
