alter table sources add column links_scored text;

create table link_asked (
    link_id integer not null references links (id) on delete cascade,
    text text not null,
    recipe text not null,
    keywords text not null,
    answer text not null default '{{}}',
    comment text not null default '',
    asked_at {time} not null,
    primary key (link_id, text)
) {without_rowid};

create table link_keywords (
    link_id integer not null references links (id) on delete cascade,
    keyword text not null,
    score {real} not null,
    primary key (link_id, keyword)
) {without_rowid};
