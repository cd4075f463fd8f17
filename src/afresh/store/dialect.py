"""Common parts of both database dialects: named SQL statements, transactions and wake-ups.

Every statement is text under a line `-- name` in `queries/`, in a file named after the module that uses it:
`pages.sql` for every dialect, `pages.sqlite.sql` for one dialect whose SQL differs.

A statement may contain these placeholders, which each dialect replaces with its own SQL:

- `{list x}`: the members of the list parameter x
- `{rows a b}`: a table with the columns a and b, whose rows are the argument `rows` of `Transaction.many`
- `{text x}`: a stored text, which may be compressed
- `{holds x}`: whether a column contains a text, ignoring case
- `{for update}`, `{for update skip locked}`: row locks, for dialects with several writers
- `{of sources}`: whether a page belongs to some sources. The statement exists twice: NAME for any number of
  sources, NAME_of_one for a single one, which uses an index
- `{open rows}`: the checks in the queue, with their pages. The statement exists twice: NAME_of_few, for sources with
  few pages, reads the pages first; NAME reads the queue first
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from afresh.dataclass import dataclass
from afresh.errors import SchemaTooNew, StoreError
from afresh.model.filters import Sources

if TYPE_CHECKING:
    from afresh.store.postgres import PostgresDatabase
    from afresh.store.sqlite import SqliteDatabase

FOLDER = Path(__file__).parent
Database: TypeAlias = "SqliteDatabase | PostgresDatabase"

WORK = frozenset(  # statements after which waiting workers may find work
    {
        *("insert_run", "resume_run", "finish_run"),
        *("open_crawl", "reopen_crawl", "adopt_known", "adopt_rows", "give_back_crawls", "release_crawls"),
        *("release_hosts", "hand_over_hosts"),
    }
)
Row = Mapping[str, Any]
_FORMS = {  # by suffix of the statement name
    "{of sources}": {"": "(:everywhere = 1 or +p.source_id in {list sources})", "_of_one": "p.source_id = :source"},
    "{open rows}": {"": "page_crawls c cross join pages p", "_of_few": "pages p cross join page_crawls c"},
}
_NAME = re.compile(r"^-- ([a-z_]+)$", re.MULTILINE)


class Wakeups:
    """Counts wake-ups and lets callers wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def ring(self) -> None:
        self.count += 1
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    async def wait(self, since: int, seconds: float) -> None:
        """Wait until the number of wake-ups differs from `since`, for at most `seconds`."""
        if self.count != since:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._next.wait()


class Transaction(Protocol):
    async def all(self, name: str, /, **params: object) -> Sequence[Row]: ...

    async def each(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> Sequence[Sequence[Row]]:
        """Run a statement for each set of parameters, as one batch; return a list of rows for each set."""

    async def one(self, name: str, /, **params: object) -> Row | None:
        rows = await self.all(name, **params)
        return rows[0] if rows else None

    async def only(self, name: str, /, **params: object) -> Row:
        """Return the row of a statement that always returns exactly one, such as `insert … returning`."""
        return (await self.all(name, **params))[0]

    async def number(self, name: str, /, **params: object) -> int:
        """Return the first value of the first row, or 0 if there is none."""
        rows = await self.all(name, **params)
        return int(next(iter(rows[0])) or 0) if rows else 0

    async def run(self, name: str, /, **params: object) -> int:
        """Run a statement and return how many rows it changed."""

    async def many(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> None:
        """Run a statement for each row; SQLite may delay this, and errors, to the next statement or the commit."""


@cache
def queries(dialect: str) -> dict[str, str]:
    """Return the SQL of all statements for a dialect by name; raise ValueError if a name occurs twice."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.joinpath("queries").iterdir()):
        kind = file.name.split(".")[1:]
        if kind not in (["sql"], [dialect, "sql"]):
            continue
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are called {name}")
            found[name] = text.strip().rstrip(";")
    for name, text in list(found.items()):
        for token, forms in _FORMS.items():
            if token in text:
                found |= {name + end: text.replace(token, words) for end, words in forms.items()}
    return found


def of_sources(name: str, sources: Sources) -> tuple[str, dict[str, object]]:
    """Return name and parameters of a statement on pages of `sources`; for a single source, its variant NAME_of_one."""
    if sources is not None and len(sources) == 1:
        return f"{name}_of_one", {"source": sources[0]}
    return name, among_sources(sources)


def migrations(dialect: str) -> list[tuple[int, str]]:
    """Return the version and script of each migration in order, including the dialect's additions."""
    folder = FOLDER / "migrations"
    shared = sorted(f.name for f in folder.iterdir() if re.fullmatch(r"\d{4}_[a-z_]+\.sql", f.name))
    steps = []
    for name in shared:
        text = folder.joinpath(name).read_text(encoding="utf-8")
        own = folder.joinpath(name.replace(".sql", f".{dialect}.sql"))
        if own.is_file():
            text += "\n" + own.read_text(encoding="utf-8").replace("{", "{{").replace("}", "}}")
        steps.append((int(name[:4]), text))
    return steps


def check_version(store: str, version: int, steps: Sequence[tuple[int, str]]) -> None:
    """Raise an error if a schema is newer than the last migration or older than the first."""
    first, newest = steps[0][0], steps[-1][0]
    if version > newest:
        raise SchemaTooNew(
            f"the store {store} was written by a newer afresh (schema {version}, this one supports {newest}); "
            "upgrade afresh or name another store with --store"
        )
    if 0 < version < first:
        raise StoreError(
            f"the store {store} was written by a much older afresh (schema {version}, this one supports {first} "
            "and later); open it once with an afresh version in between, or move it away and crawl again"
        )


def among_sources(sources: Sources) -> dict[str, object]:
    """Return the parameters that limit a statement to `sources`; None: all sources."""
    return {"everywhere": int(sources is None), "sources": list(sources or ())}


def in_any_case(text: str | None) -> dict[str, object]:
    """Return the parameters of an SQL condition that finds a text in any case; an empty text matches everything."""
    letters = [_cases(each) for each in text or ""]
    others = {case: cases[0] for cases in letters for case in cases[1:]}
    return {
        "text": text or None,
        "glob": f"*{''.join(f'[{each}]' if len(each) > 1 or each in '*?[' else each for each in letters)}*",
        "part": f"%{''.join(f'!{each[0]}' if each[0] in '!%_' else each[0] for each in letters)}%",
        "capitals": "".join(others),
        "smalls": "".join(others.values()),
    }


def _cases(char: str) -> str:
    """Return a letter in all its cases, lower case first; an ASCII letter only in lower case, as SQL converts it."""
    if char.isascii():
        return char.lower()
    small = char.upper().lower()
    if len(small) != 1:  # ß
        return char
    return "".join(dict.fromkeys(each for each in (small, small.upper(), char) if len(each) == 1))


LIST_TOKEN = re.compile(r"\{list (\w+)\}")
ROWS_TOKEN = re.compile(r"\{rows ([\w ]+)\}")
TEXT_TOKEN = re.compile(r"\{text ([\w.]+)\}")
HOLDS_TOKEN = re.compile(r"\{holds ([\w.]+)\}")
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
TYPES = {  # parameters without an entry are texts
    **dict.fromkeys(_NUMBERS.split(), "bigint"),
    **dict.fromkeys(_TIMES.split(), "timestamptz"),
    **dict.fromkeys(("blocked", "domains", "hashes", "kinds", "matches", "sinks", "urls", "workers"), "text[]"),
    **dict.fromkeys(("chunks", "crawls", "links", "others", "pages", "runs", "sources"), "bigint[]"),
    **dict.fromkeys(("after_score", "least", "quiet_seconds", "score", "span_seconds"), "float8"),
    **dict.fromkeys(("worth",), "float8[]"),
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A PostgreSQL statement with the names of its parameters, or of the columns if it takes many rows."""

    text: str
    names: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def values(self, params: Mapping[str, object]) -> list[object]:
        return [without_nul(params[name]) for name in self.names]

    def table(self, rows: Sequence[Mapping[str, object]]) -> list[object]:
        """Return the arguments for a statement that takes many rows: one list per column."""
        return [[without_nul(row[column]) for row in rows] for column in self.columns]


@cache
def statement(name: str) -> Statement:
    """Return a named statement in the SQL of PostgreSQL, with numbered parameters."""
    sql = TEXT_TOKEN.sub(r"\1", _LOCK.sub(r"\1", HOLDS_TOKEN.sub(_HELD, queries("postgres")[name])))
    if (rows := ROWS_TOKEN.search(sql)) is not None:
        columns = tuple(rows[1].split())
        return Statement(ROWS_TOKEN.sub(_table(columns), sql), (), columns)
    names: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        number = names.setdefault(match[1], len(names) + 1)
        return f"${number}::{TYPES.get(match[1], 'text')}"

    sql = _PARAMETER.sub(numbered, LIST_TOKEN.sub(r"(select unnest(:\1) as value)", sql))
    return Statement(sql, tuple(names))


def _table(columns: Sequence[str]) -> str:
    lists = ", ".join(f"${at}::{TYPES.get(name, 'text')}[]" for at, name in enumerate(columns, 1))
    named = ", ".join(f'"{name}"' for name in columns)
    return f"(select * from unnest({lists}) as given ({named}))"


def without_nul(value: object) -> object:
    """Remove NUL characters, which PostgreSQL cannot store."""
    if isinstance(value, str):
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, list | tuple):
        return [without_nul(each) for each in value]
    return value
