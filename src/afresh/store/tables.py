"""The tables as the migrations make them: what there is to copy, in which order, and by which key."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cache

from afresh.store.sql import migrations
from afresh.store.sqlite_schema import DDL, split

PASSING = frozenset(
    {"workers", "answers", "logins", "unkept_runs", "notices"}
)  # who works on a store, or asks it, does not go with it
TIME = "time"
_OF_SOURCES = "{column} in (select value from {sources})"
_PAGES = "select id from pages where source_id in (select value from {sources})"
# Which rows belong to some sources, by the first of these columns that a table has.
_BELONGS = {
    "source_id": _OF_SOURCES.format(column="source_id", sources="{sources}"),
    "page_id": f"page_id in ({_PAGES})",
    "link_id": "link_id in (select id from links where source_id in (select value from {sources}))",
    "text_hash": f"text_hash in (select text_hash from chunks where page_id in ({_PAGES}))",
    "domain": f"domain in (select domain from page_crawls where page_id in ({_PAGES}))",
}
_BY_NAME = {
    "sources": _OF_SOURCES.format(column="id", sources="{sources}"),
    "page_crawls": f"(page_id in ({_PAGES}) or page_id is null and run_id in "
    "(select id from runs where source_id in (select value from {sources})))",
    "outbox": "run_id in (select id from runs where source_id in (select value from {sources}))",
    "sync_documents": "run_id in (select id from runs where source_id in (select value from {sources}))",
    "models": "true",
    "sinks": "true",
    "store_ids": "true",
    "page_numbers": "true",
}


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns with what they hold, and the columns that its rows are told apart by."""

    name: str
    columns: dict[str, str]  # to integer, real, text, blob or time
    key: tuple[str, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """Where the key stands in a row."""
        names = list(self.columns)
        return tuple(names.index(column) for column in self.key)

    @property
    def listed(self) -> str:
        """The columns as SQL lists them."""
        return ", ".join(f'"{name}"' for name in self.columns)

    def of_sources(self, sources: str) -> str:
        """The condition that a row belongs to some sources, given the SQL of a table of their numbers."""
        by_column = next((text for name, text in _BELONGS.items() if name in self.columns), "false")
        return _BY_NAME.get(self.name, by_column).format(sources=sources)


@cache
def tables() -> tuple[Table, ...]:
    """All tables that a copy holds, those that others refer to first."""
    with closing(sqlite3.connect(":memory:")) as meant, closing(sqlite3.connect(":memory:")) as real:
        for number, script in migrations(""):
            _run(meant, script.format(**{**DDL, "time": TIME}))
            own = dict(migrations("sqlite"))[number]
            _run(real, own.format(**DDL))
        names = [
            name
            for (name,) in meant.execute(
                "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
            )
            if name not in PASSING
        ]
        found = {name: _table(meant, real, name) for name in names}
        parents = {name: _parents(real, name) & found.keys() for name in names}
    return tuple(found[name] for name in _in_order(parents))


def _run(connection: sqlite3.Connection, script: str) -> None:
    for sql in split(script):
        connection.execute(sql)


def _table(meant: sqlite3.Connection, real: sqlite3.Connection, name: str) -> Table:
    """Columns as they are, with the kinds that the shared migrations tell."""
    kinds = {row[1]: row[2].lower() for row in meant.execute(f"pragma table_info({name})")}
    rows = real.execute(f"pragma table_info({name})").fetchall()
    key = sorted((row[5], row[1]) for row in rows if row[5])
    columns = {row[1]: kinds.get(row[1], row[2].lower()) for row in rows}
    return Table(name, columns, tuple(column for _, column in key))


def _parents(connection: sqlite3.Connection, name: str) -> set[str]:
    return {row[2] for row in connection.execute(f"pragma foreign_key_list({name})")} - {name}


def _in_order(parents: dict[str, set[str]]) -> Iterable[str]:
    done: set[str] = set()
    while len(done) < len(parents):
        ready = [name for name in parents if name not in done and parents[name] <= done]
        if not ready:
            raise ValueError("tables refer to each other in a circle")
        done.update(ready)
        yield from ready
