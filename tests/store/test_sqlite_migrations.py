"""F08, P20: an older schema comes up to date by a next step, and a kill on the way leaves old or new."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.store.asking import search
from tests.store.dying import FIRST, STEPS

from afresh.errors import StoreError
from afresh.search.records import SearchFilter
from afresh.store import sqlite
from afresh.store.open import migrate_store, open_store
from afresh.store.sqlite import add_functions
from afresh.store.sqlite_file import DDL, split, ways_in
from afresh.testing import FakeEmbedder

ROOT = Path(__file__).resolve().parents[2]
NEWEST = STEPS[-1][0]
OLDER = [0, *(number for number, _ in STEPS[:-1])]
KILLED = sorted({0, OLDER[len(OLDER) // 2], OLDER[-1]})
SOURCE = (
    "insert into sources (name, kind, url, created_at, updated_at) "
    "values ('docs', 'web', 'https://docs.example.org/', '2026-01-05T09:00:00Z', '2026-01-05T09:00:00Z')"
)


@pytest.fixture(autouse=True)
def _from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """New files begin empty, as they do outside of tests, and end at the schema of an afresh to come."""
    monkeypatch.setattr(sqlite, "ways_in", ways_in)
    monkeypatch.setattr("afresh.store.sqlite_file.migrations", lambda dialect: STEPS)


def _make_old(file: Path, version: int) -> None:
    """A store as an older afresh left it, with a source in it."""
    if version == 0:
        return
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        add_functions(connection)
        for number, script in STEPS:
            for sql in split(script.format(**DDL)) if number <= version else ():
                connection.execute(sql)
        connection.execute(SOURCE)
        connection.execute(f"pragma user_version = {version}")


def _look(file: Path) -> tuple[int, Sequence[object]]:
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        [version] = connection.execute("pragma user_version").fetchone()
        return version, connection.execute("select type, name, sql from sqlite_master order by 2").fetchall()


def _left(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.db"), key=lambda file: int(file.stem))


async def _open_and_look(file: Path) -> tuple[int, Sequence[object], list[str]]:
    store = await open_store(f"sqlite:///{file}")
    names = [source.name for source in await store.sources.all()]
    await store.close()
    return *_look(file), names


@pytest.mark.slow
@pytest.mark.parametrize("version", KILLED)
async def test_F08_P20_a_migration_killed_at_any_statement_leaves_old_or_new_and_starts(
    version: int, tmp_path: Path
) -> None:
    """From nothing and from the older schema it dies at each statement there is."""
    _make_old(tmp_path / "old.db", version)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    subprocess.run(  # noqa: ASYNC221 - nothing else happens meanwhile
        [sys.executable, "-m", "tests.store.dying", str(tmp_path)], check=True, cwd=ROOT, env=environment
    )
    old = _look(tmp_path / "old.db") if version else (0, [])
    left = _left(tmp_path)
    assert len(left) > 3, "it was killed all along the way"
    states = [_look(file) for file in left]
    assert {state[0] for state in states} == {version, NEWEST}
    assert all(state == old for state in states if state[0] == version), "nothing of the new one is there"
    fresh = await _open_and_look(tmp_path / "fresh.db")
    kept = ["docs"] if version else []
    for file in left[:: max(1, len(left) // 8)]:
        assert await _open_and_look(file) == (*fresh[:2], kept)


@pytest.mark.parametrize("version", OLDER)
async def test_P20_a_migration_is_undone_when_a_statement_fails(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "old.db"
    _make_old(file, version)
    broken = [*STEPS[:-1], (NEWEST, STEPS[-1][1] + "\ncreate table sources (id integer);")]
    monkeypatch.setattr("afresh.store.sqlite_file.migrations", lambda dialect: broken)
    with pytest.raises(Exception, match="already exists"):
        await open_store(f"sqlite:///{file}")
    monkeypatch.setattr("afresh.store.sqlite_file.migrations", lambda dialect: STEPS)
    assert _look(file)[0] == version
    assert (await _open_and_look(file))[0] == NEWEST


@pytest.mark.parametrize("version", [1, 3, STEPS[0][0] - 1])
async def test_F08_P20_a_schema_older_than_the_first_is_refused_and_left_alone(version: int, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table sources (id integer primary key)")
        connection.execute(f"pragma user_version = {version}")
    before = file.read_bytes()
    with pytest.raises(StoreError, match=rf"much older afresh \(schema {version}.*or move it away and crawl again"):
        await open_store(f"sqlite:///{file}")
    assert file.read_bytes() == before


async def test_P20_a_store_of_the_last_schema_opens_without_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.store.sqlite_file.migrations", lambda dialect: FIRST)
    file = tmp_path / "old.db"
    _make_old(file, FIRST[-1][0])
    before = _look(file)
    assert (await _open_and_look(file)) == (*before, ["docs"])


OLD_ROWS = """
insert into pages (id, source_id, url, title, language, content_hash, created_at, updated_at)
values (1, 1, 'https://docs.example.org/{language}', 'T', '{language}', 'h{language}', '2026', '2026');
insert into documents (page_id, markdown) values (1, '{text}');
insert into chunks (page_id, sort_order, title, heading, content, metadata, config, text_hash, created_at)
values (1, 0, 'T', '', '{text}', '{{"path": []}}', '{config}', 'x', '2026');
"""


@pytest.mark.parametrize(
    ("language", "config", "text", "query"),
    [("en", "english", "Running dogs", "dog runs"), ("de", "simple", "Die Häuser", "Häuser")],
)
async def test_P20_what_an_older_afresh_has_indexed_is_found(
    language: str, config: str, text: str, query: str, tmp_path: Path
) -> None:
    """Its chunks have no terms: they are searched as they are, until their page is made anew."""
    _make_old(tmp_path / "old.db", STEPS[0][0])
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(OLD_ROWS.format(language=language, config=config, text=text))
    store = await open_store(f"sqlite:///{tmp_path / 'old.db'}")
    for asked in (None, language):
        assert [hit.language for hit in await search(store, query, language=asked)] == [language]
    assert await store.stats.integrity() is None
    await store.close()


@pytest.mark.parametrize("command", [True, False])
async def test_P20_vectors_of_an_older_afresh_are_made_smaller_and_found(
    command: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema 28 had two bytes per number and no codes."""
    monkeypatch.setattr("afresh.store.sqlite_file.migrations", lambda dialect: FIRST)
    file, embedder = tmp_path / "old.db", FakeEmbedder(dimension=32)
    texts = [f"text {number}" for number in range(40)]
    rows = (await embedder.embed(texts)).astype("<f2")
    _make_old(file, 28)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("insert into models values (1, 'old', 32, 1, '2026')")
        connection.executescript(OLD_ROWS.format(language="en", config="english", text="old"))
        chunk = "insert into chunks select null, 1, ?, 'T', '', ?, null, '{}', 'simple', 1, ?, '2026'"
        connection.executemany(chunk, [(at, text, f"hash of {text}") for at, text in enumerate(texts, 1)])
        vector = "insert into vectors values (null, 1, ?, ?, '2099')"
        kept = [(f"hash of {text}", row.tobytes()) for text, row in zip(texts, rows, strict=True)]
        connection.executemany(vector, kept)
    if command:
        assert (await migrate_store(f"sqlite:///{file}")).before == 28
    store = await open_store(f"sqlite:///{file}")
    for again in range(2):
        question = await embedder.embed_query(texts[7])
        [near] = (await store.vectors.nearest("old", question, SearchFilter(), 1)).likeness(question).chunks
        assert near.score > 0.99
        assert near.chunk == 9
        assert _coded(file) == (command or bool(again))
        if not again:
            await store.vectors.forget(datetime(2026, 1, 1, tzinfo=UTC))
    assert await store.stats.integrity() is None
    await store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("select sum(length(vector)), count(*) from vectors").fetchall() == [(40 * 32, 40)]


def _coded(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("select coded from models").fetchall() == [(1,)]
