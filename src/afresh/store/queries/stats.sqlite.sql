-- changes_by_day
select source_id, substr(at, 1, 10) as day, kind, count(*) as number from changes
where source_id in {list sources} and substr(at, 1, 10) >= :day
group by source_id, substr(at, 1, 10), kind order by source_id, day, kind

-- looks_by_hour
select case when c.scheduled_for <= :now or c.updated_at > :now then '' else substr(c.scheduled_for, 1, 13) end as hour,
    count(*) as number
from page_crawls c cross join pages p
where p.id = c.page_id and c.outcome is null and p.source_id = :source
    and (p.status not in ('deleted', 'redirect') or p.listed = 1)
group by hour
