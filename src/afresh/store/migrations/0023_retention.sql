create table page_numbers (
    id integer primary key,
    last integer not null
);
create index outbox_ended on outbox (ended_at) where ended_at is not null;
