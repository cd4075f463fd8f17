alter table workers add column helps integer;
