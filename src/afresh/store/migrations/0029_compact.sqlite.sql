-- The vectors with the same id / 256, made smaller: see store/compact.py. A model is `coded` if all of its are.
alter table models add column coded integer not null default 0;
create table vector_blocks (
    model_id integer not null references models (id) on delete cascade,
    block integer not null,
    places blob not null,
    codes blob not null,
    middle blob not null,
    primary key (model_id, block)
);

-- Texts may be compressed and vectors have a byte per number: see store/sqlite.py. Old texts stay as they are.
update vectors set vector = packed(vector);
drop view chunk_words;
create view chunk_words as
select id, config,
    coalesce(json_extract(terms, '$[0]'), title) as title,
    coalesce(json_extract(terms, '$[1]'), heading) as heading,
    coalesce(json_extract(terms, '$[2]'), inflated(content)) as content
from chunks;
drop trigger chunks_insert_english;
drop trigger chunks_delete_english;
drop trigger chunks_retitle_english;
drop trigger chunks_insert_simple;
drop trigger chunks_delete_simple;
drop trigger chunks_retitle_simple;
create trigger chunks_insert_english after insert on chunks when new.config = 'english' begin
    insert into chunks_english (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), inflated(new.content)));
end;
create trigger chunks_delete_english after delete on chunks when old.config = 'english' begin
    insert into chunks_english (chunks_english, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), inflated(old.content)));
end;
create trigger chunks_retitle_english after update of title, terms on chunks when old.config = 'english' begin
    insert into chunks_english (chunks_english, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), inflated(old.content)));
    insert into chunks_english (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), inflated(new.content)));
end;
create trigger chunks_insert_simple after insert on chunks when new.config <> 'english' begin
    insert into chunks_simple (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), inflated(new.content)));
end;
create trigger chunks_delete_simple after delete on chunks when old.config <> 'english' begin
    insert into chunks_simple (chunks_simple, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), inflated(old.content)));
end;
create trigger chunks_retitle_simple after update of title, terms on chunks when old.config <> 'english' begin
    insert into chunks_simple (chunks_simple, rowid, title, heading, content)
    values ('delete', old.id, coalesce(json_extract(old.terms, '$[0]'), old.title),
        coalesce(json_extract(old.terms, '$[1]'), old.heading),
        coalesce(json_extract(old.terms, '$[2]'), inflated(old.content)));
    insert into chunks_simple (rowid, title, heading, content)
    values (new.id, coalesce(json_extract(new.terms, '$[0]'), new.title),
        coalesce(json_extract(new.terms, '$[1]'), new.heading),
        coalesce(json_extract(new.terms, '$[2]'), inflated(new.content)));
end;
