alter table chunks drop column embedding;
create index chunks_by_text on chunks (text_hash, page_id);

-- The nearest by an index of one model: its number and its dimensions are part of the index, so of the question.
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
