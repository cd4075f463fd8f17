-- runs_by_state
select state, count(*) as number from runs group by state order by state

-- copies_by_state
select sink, state, count(*) as number from copies group by sink, state order by sink, state

-- counts_of_runs
select id, state, counts from runs where id > :after order by id limit :limit
