create index page_links_by_link on page_links (link_id);
create index changes_by_day on changes (source_id, substr(at, 1, 10), kind);

-- The words by which a chunk is found: its terms (title, heading, content) if it has any, else the text itself.
create view chunk_words as
select id, config,
    coalesce(json_extract(terms, '$[0]'), title) as title,
    coalesce(json_extract(terms, '$[1]'), heading) as heading,
    coalesce(json_extract(terms, '$[2]'), content) as content
from chunks;
create view english_words as select id, title, heading, content from chunk_words where config = 'english';
create view simple_words as select id, title, heading, content from chunk_words where config <> 'english';

create virtual table chunks_english using fts5 (
    title, heading, content, content = 'english_words', content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
create virtual table chunks_simple using fts5 (
    title, heading, content, content = 'simple_words', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
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
