alter table sources add column mark text;
alter table sources add column told_at {time};
alter table sources add column told_run_at {time};
