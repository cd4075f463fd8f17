alter table sources add column mark text;
