-- A number once given to a chunk is never given again: an index in memory knows by it what is new.
create table chunks_kept (
    id integer primary key autoincrement,
    page_id integer not null references pages (id) on delete cascade,
    sort_order integer not null,
    title text not null,
    heading text not null,
    content text not null,
    terms text,
    metadata text not null,
    config text not null,
    whole integer not null default 1,
    text_hash text not null,
    created_at text not null
);
insert into chunks_kept (
    id, page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at
)
select id, page_id, sort_order, title, heading, content, terms, metadata, config, whole, text_hash, created_at from chunks;
drop view english_words;
drop view simple_words;
drop view chunk_words;
drop table chunks;
alter table chunks_kept rename to chunks;
create index chunks_by_page on chunks (page_id, sort_order);
create index chunks_by_config on chunks (config);
create index chunks_by_text on chunks (text_hash, page_id);

create view chunk_words as
select id, config,
    coalesce(json_extract(terms, '$[0]'), title) as title,
    coalesce(json_extract(terms, '$[1]'), heading) as heading,
    coalesce(json_extract(terms, '$[2]'), content) as content
from chunks;
create view english_words as select id, title, heading, content from chunk_words where config = 'english';
create view simple_words as select id, title, heading, content from chunk_words where config <> 'english';

create trigger chunks_insert_english after insert on chunks when new.config = 'english' begin
    insert into chunks_english (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), new.content));
end;
create trigger chunks_delete_english after delete on chunks when old.config = 'english' begin
    insert into chunks_english (chunks_english, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), old.content));
end;
create trigger chunks_retitle_english after update of title, terms on chunks when old.config = 'english' begin
    insert into chunks_english (chunks_english, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), old.content));
    insert into chunks_english (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), new.content));
end;
create trigger chunks_insert_simple after insert on chunks when new.config <> 'english' begin
    insert into chunks_simple (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), new.content));
end;
create trigger chunks_delete_simple after delete on chunks when old.config <> 'english' begin
    insert into chunks_simple (chunks_simple, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), old.content));
end;
create trigger chunks_retitle_simple after update of title, terms on chunks when old.config <> 'english' begin
    insert into chunks_simple (chunks_simple, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), old.content));
    insert into chunks_simple (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), new.content));
end;
