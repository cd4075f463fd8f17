alter table sources add column operator_url text;
