create index page_links_of_link on page_links (link_id, page_id);
create index changes_by_day on changes (source_id, ((at at time zone 'UTC')::date), kind);

alter table chunks add column words tsvector not null default '';
create index chunks_english on chunks using gin (words) where config = 'english';
create index chunks_simple on chunks using gin (words) where config <> 'english';

-- The nearest chunks by the vector index of a model. Its id and dimensions are part of the index definition, so the
-- query has to contain them as literals.
create function nearest_by_index(model bigint, dimensions bigint, asked varchar, pages bigint[], most bigint)
returns table (chunk bigint, likeness double precision) language plpgsql stable as $$
begin
    perform set_config('hnsw.ef_search', '200', true), set_config('hnsw.iterative_scan', 'strict_order', true);
    return query execute format(
        'select c.id, -(v.vector::halfvec(%2$s) <#> $1::halfvec(%2$s)) from vectors v
        join chunks c on c.text_hash = v.text_hash
        where v.model_id = %1$s and ($2 is null or c.page_id = any ($2))
        order by v.vector::halfvec(%2$s) <#> $1::halfvec(%2$s) limit $3', model, dimensions
    ) using asked, pages, most;
end
$$;
