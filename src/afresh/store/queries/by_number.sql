-- page_records
select p.*, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id
where p.id > :after and {of sources}
    and (:status is null or p.status = :status)
    and (:everything = 1 or :status is not null or p.status not in ('deleted', 'redirect'))
    and (:doubtful = 0 or p.doubt is not null)
    and (:language is null or p.language = :language)
    and (:depth is null or p.depth = :depth)
    and (:text is null or {holds p.url} or {holds p.title})
order by p.id
limit :limit

-- page_record
select p.*, s.told_at, s.told_run_at,
    (select n.scheduled_for from page_crawls n where n.page_id = p.id and n.outcome is null) as next_look
from pages p join sources s on s.id = p.source_id where p.id = :page

-- link_records
select l.id, l.source_id, l.url, l.score, l.comment from links l
where (:everywhere = 1 or l.source_id in {list sources})
    and exists (select 1 from page_links e where e.link_id = l.id)
    and (:page is null or l.id in (select e.link_id from page_links e where e.page_id = :page))
    and (:url is null or l.url = :url)
    and (:least is null or l.score >= :least)
    and (:keyword is null or exists (
        select 1 from link_keywords k where k.link_id = l.id and k.keyword = :keyword
    ))
    and (
        :after is null or coalesce(l.score, 0) < :after_score
        or (coalesce(l.score, 0) = :after_score and (l.url > :after_url or (l.url = :after_url and l.id > :after)))
    )
order by coalesce(l.score, 0) desc, l.url, l.id
limit :limit

-- link_record
select l.id, l.source_id, l.url, l.score, l.comment from links l
where l.id = :link and exists (select 1 from page_links e where e.link_id = l.id)

-- best_links
select l.id, l.source_id, l.url, l.score, l.comment from links l
where l.source_id = :source and exists (select 1 from page_links e where e.link_id = l.id)
    and (:least is null or l.score >= :least)
    and (:keyword is null or exists (
        select 1 from link_keywords k where k.link_id = l.id and k.keyword = :keyword
    ))
    and (
        :after is null or coalesce(l.score, 0) < :after_score
        or (coalesce(l.score, 0) = :after_score and (l.url > :after_url or (l.url = :after_url and l.id > :after)))
    )
order by coalesce(l.score, 0) desc, l.url, l.id
limit :limit

-- places_of_link
select e.page_id, f.url, f.title, e.text, max(f.crawl_time) over () as crawl_time
from (select page_id, text from page_links where link_id = :link order by page_id limit :limit) e
join pages f on f.id = e.page_id
order by f.depth, f.url limit :most

-- count_places
select count(*) as places from page_links where link_id = :link

-- run_records
select * from runs
where (:top is null or id < :top) and (:everywhere = 1 or source_id in {list sources})
    and (:state is null or state = :state)
order by id desc
limit :limit

-- change_records
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_of_source
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.source_id = :source and c.id < coalesce(:top, 9223372036854775807)
order by c.id desc
limit :limit

-- changes_of_kind
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.source_id = :source and c.kind = :kind and c.id < coalesce(:top, 9223372036854775807)
order by c.id desc
limit :limit

-- every_change_of_kind
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.kind = :kind and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_in_run
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.run_id = :run and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_of_kind_in_run
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.run_id = :run and c.kind = :kind and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
order by c.id desc
limit :limit

-- changes_of_url
select c.*, s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.url = :url and c.id < coalesce(:top, 9223372036854775807)
    and (:everywhere = 1 or c.source_id in {list sources})
    and (:run is null or c.run_id = :run) and (:kind is null or c.kind = :kind)
order by c.id desc
limit :limit

-- changes_of_run
select c.id, c.url, c.kind, c.run_id, c.at, c.old_hash, c.new_hash, null as diff, c.moved_to,
    s.name as source_name, s.version as source_version
from changes c join sources s on s.id = c.source_id
where c.run_id = :run and c.kind in {list kinds}
order by c.id
limit :limit

-- attempt_records
select * from page_crawls
where page_id = :page and (
    :top is null or (:until is null and id < :top)
    or completed_at < :until or (completed_at = :until and id < :top)
)
order by (completed_at is null) desc, completed_at desc, id desc limit :limit

-- attempt_place
select outcome, completed_at from page_crawls where id = :top

-- attempts_with_outcome
select * from page_crawls
where run_id = :run and outcome = :outcome and id > :after
order by id
limit :limit
