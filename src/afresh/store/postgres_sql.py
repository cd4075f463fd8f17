"""Named SQL in PostgreSQL's words: numbered parameters, each with a type that its name tells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from afresh.store.sql import queries

_LIST = re.compile(r"\{list (\w+)\}")
_ROWS = re.compile(r"\{rows ([\w ]+)\}")
_HOLDS = re.compile(r"\{holds ([\w.]+)\}")
_LOCK = re.compile(r"\{(for update[\w ]*)\}")
_HELD = r"translate(lower(\1), :capitals, :smalls) like :part escape '!'"
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")

_NUMBERS = """
    admitted after attempts audit change_count changed chunk copy crashes crawl depth dimensions doomed_by
    doubt_run doubtful everything everywhere failures flagged follow full gone_count had_turn length limit
    link links_left_out listed max_depth missing_count model most mtime_ns number open page page_id partly
    pid position priority putting rank run run_id size sort_order source status_code target times token top
    trial whole
"""
_TIMES = """
    at before began changed_after changed_at checked_after checked_at crawl_time failed_at fetched_at
    indexed_at last_scraped last_seen latest next_try_at now observed_at oldest put_at since slot started
    taken_at until
"""
TYPES = {  # a parameter that is not named here is a text
    **dict.fromkeys(_NUMBERS.split(), "bigint"),
    **dict.fromkeys(_TIMES.split(), "timestamptz"),
    **dict.fromkeys(
        ("blocked", "domains", "hashes", "kinds", "matches", "sinks", "urls", "workers"), "text[]"
    ),
    **dict.fromkeys(("chunks", "crawls", "links", "others", "pages", "runs", "sources"), "bigint[]"),
    **dict.fromkeys(("after_score", "least", "quiet_seconds", "score", "span_seconds"), "float8"),
    **dict.fromkeys(("worth",), "float8[]"),
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with the names of its parameters; with columns, its parameters are those of many rows."""

    text: str
    names: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def values(self, params: Mapping[str, object]) -> list[object]:
        """What the server is handed for one set of parameters."""
        return [_clean(params[name]) for name in self.names]

    def table(self, rows: Sequence[Mapping[str, object]]) -> list[object]:
        """What the server is handed for many rows: one list for each column."""
        return [[_clean(row[column]) for row in rows] for column in self.columns]


@cache
def statement(name: str) -> Statement:
    """A named statement as the server takes it."""
    sql = _LOCK.sub(r"\1", _HOLDS.sub(_HELD, queries("postgres")[name]))
    if (rows := _ROWS.search(sql)) is not None:
        columns = tuple(rows[1].split())
        return Statement(_ROWS.sub(_table(columns), sql), (), columns)
    names: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        number = names.setdefault(match[1], len(names) + 1)
        return f"${number}::{TYPES.get(match[1], 'text')}"

    sql = _PARAMETER.sub(numbered, _LIST.sub(r"(select unnest(:\1) as value)", sql))
    return Statement(sql, tuple(names))


def _table(columns: Sequence[str]) -> str:
    lists = ", ".join(f"${at}::{TYPES.get(name, 'text')}[]" for at, name in enumerate(columns, 1))
    named = ", ".join(f'"{name}"' for name in columns)
    return f"(select * from unnest({lists}) as given ({named}))"


def _clean(value: object) -> object:
    """PostgreSQL keeps every character but one."""
    if isinstance(value, str):
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value
