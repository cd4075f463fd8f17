create virtual table chunks_english using fts5 (
    title, heading, content,
    content = 'chunks', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
create virtual table chunks_simple using fts5 (
    title, heading, content,
    content = 'chunks', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

create trigger chunks_insert_english after insert on chunks when new.config = 'english' begin
    insert into chunks_english (rowid, title, heading, content)
    values (new.id, new.title, new.heading, new.content);
end;
create trigger chunks_insert_simple after insert on chunks when new.config <> 'english' begin
    insert into chunks_simple (rowid, title, heading, content)
    values (new.id, new.title, new.heading, new.content);
end;
create trigger chunks_delete_english after delete on chunks when old.config = 'english' begin
    insert into chunks_english (chunks_english, rowid, title, heading, content)
    values ('delete', old.id, old.title, old.heading, old.content);
end;
create trigger chunks_delete_simple after delete on chunks when old.config <> 'english' begin
    insert into chunks_simple (chunks_simple, rowid, title, heading, content)
    values ('delete', old.id, old.title, old.heading, old.content);
end;
create trigger chunks_retitle_english after update of title on chunks when old.config = 'english' begin
    insert into chunks_english (chunks_english, rowid, title, heading, content)
    values ('delete', old.id, old.title, old.heading, old.content);
    insert into chunks_english (rowid, title, heading, content)
    values (new.id, new.title, new.heading, new.content);
end;
create trigger chunks_retitle_simple after update of title on chunks when old.config <> 'english' begin
    insert into chunks_simple (chunks_simple, rowid, title, heading, content)
    values ('delete', old.id, old.title, old.heading, old.content);
    insert into chunks_simple (rowid, title, heading, content)
    values (new.id, new.title, new.heading, new.content);
end;
