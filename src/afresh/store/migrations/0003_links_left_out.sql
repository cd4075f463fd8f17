alter table pages add column links_left_out integer not null default 0;
