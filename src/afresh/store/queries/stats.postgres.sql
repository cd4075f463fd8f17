-- changes_by_day
select source_id, ((at at time zone 'UTC')::date)::text as day, kind, count(*) as number from changes
where source_id in {list sources} and (at at time zone 'UTC')::date >= cast(:day as date)
group by source_id, (at at time zone 'UTC')::date, kind order by source_id, day, kind

-- looks_by_hour
select coalesce(to_char(w.hour, 'YYYY-MM-DD"T"HH24'), '') as hour, w.number
from (
    select case when c.scheduled_for > :now and c.updated_at <= :now then date_trunc('hour', c.scheduled_for at time zone 'UTC') end as hour,
        count(*) as number
    from page_crawls c cross join pages p
    where p.id = c.page_id and c.outcome is null and p.source_id = :source
        and (p.status not in ('deleted', 'redirect') or p.listed = 1)
    group by 1
) w
