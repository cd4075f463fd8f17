-- add_delivery
insert into webhook_deliveries (hook, delivery, at) values (:hook, :delivery, :now)
on conflict (hook, delivery) do nothing

-- forget_deliveries
delete from webhook_deliveries where at < :before

-- add_wish
insert into webhook_wishes (source_id, url, at) values (:source, :url, :now)
on conflict (source_id, url) do update set times = webhook_wishes.times + 1, at = excluded.at

-- wishes
select * from webhook_wishes order by id limit :limit

-- fulfil_wish
delete from webhook_wishes where id = :number and times = :times
