-- add_delivery
insert into webhook_deliveries (hook, delivery, at) values (:hook, :delivery, :now)
on conflict (hook, delivery) do nothing

-- forget_deliveries
delete from webhook_deliveries where at < :before

-- add_refresh_request
insert into webhook_wishes (source_id, url, at) values (:source, :url, :now)
on conflict (source_id, url) do update set times = webhook_wishes.times + 1, at = excluded.at

-- refresh_requests
select * from webhook_wishes order by id limit :limit

-- fulfil_refresh_request
delete from webhook_wishes where id = :number and times = :times

-- add_message
insert into outbox (target, event, run_id, state, created_at, next_try_at)
values (:name, :event, :run, 'waiting', :now, :now)

-- outbox_messages
select * from outbox where :state is null or state = :state order by id desc limit :limit

-- due_messages
select * from (
    select *, row_number() over (partition by target order by id) as place
    from outbox where state = 'waiting' and next_try_at <= :now
) as due
where place <= :limit order by id

-- reserve_message
update outbox set attempts = attempts + 1, next_try_at = :until
where id = :number and state = 'waiting' and attempts = :attempts

-- record_message_attempt
update outbox
set state = :state, next_try_at = :until, error = :error, ended_at = case when :state = 'waiting' then null else :now end
where id = :number and state = 'waiting' and attempts = :attempts

-- count_messages
select state, count(*) as number from outbox group by state
