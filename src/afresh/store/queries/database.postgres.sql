-- broken_indexes
select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
where not i.indisvalid
    and c.relnamespace = (select relnamespace from pg_class where oid = to_regclass('afresh_schema'))

-- size
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes from pg_class c
where c.relkind = 'r' and c.relnamespace = (select relnamespace from pg_class where oid = to_regclass('afresh_schema'))
