-- insert_page
insert into pages (id, source_id, url, depth, created_run, created_at, updated_at)
select max(coalesce((select max(id) from pages), 0), coalesce((select last from page_numbers), 0)) + row_number() over (),
    r.source, r.url, r.depth, r.run, r.now, r.now from {rows source url depth run now} r
where true
on conflict (source_id, url) do nothing

-- addresses_with
select url, min(depth) as nearest from pages
where content_hash is not null and instr(lower(url), lower(:part)) > 0
    and (:source is null or source_id = :source)
group by url order by nearest, url limit :limit
