alter table chunks add column terms text;
create index chunks_by_config on chunks (config);
