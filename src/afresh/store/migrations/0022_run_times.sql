alter table runs add column taken_at {time};
alter table runs add column worked_at {time};
