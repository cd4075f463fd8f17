"""F08, P20: every older schema comes up to date, and a kill on the way leaves the old one or the new one."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.asking import search

from afresh.store import sqlite
from afresh.store.open import open_store
from afresh.store.sql import migrations
from afresh.store.sqlite_file import ways_in
from afresh.store.sqlite_schema import DDL, split

ROOT = Path(__file__).resolve().parents[2]
STEPS = migrations("sqlite")
NEWEST = STEPS[-1][0]
OLDER = [0, *(number for number, _ in STEPS[:-1])]
SOURCE = (
    "insert into sources (name, kind, url, created_at, updated_at) "
    "values ('docs', 'web', 'https://docs.example.org/', '2026-01-05T09:00:00Z', '2026-01-05T09:00:00Z')"
)


@pytest.fixture(autouse=True)
def _from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """New files begin empty, as they do outside of tests."""
    monkeypatch.setattr(sqlite, "ways_in", ways_in)


def _make_old(file: Path, version: int) -> None:
    """A store as an older afresh left it, with a source in it."""
    if version == 0:
        return
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
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


@pytest.mark.parametrize("version", OLDER)
async def test_F08_P20_a_migration_killed_at_any_statement_leaves_old_or_new_and_starts(
    version: int, tmp_path: Path
) -> None:
    """From nothing it dies at each statement there is, from an older schema at fifteen moments or more."""
    _make_old(tmp_path / "old.db", version)
    left_to_do = sum(len(split(script.format(**DDL))) for number, script in STEPS if number > version)
    step = max(1, left_to_do // 15) if version else 1
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    subprocess.run(  # noqa: ASYNC221 - nothing else happens meanwhile
        [sys.executable, "-m", "tests.contract.dying", str(tmp_path), str(step)],
        check=True,
        cwd=ROOT,
        env=environment,
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
    monkeypatch.setattr("afresh.store.sqlite_schema.migrations", lambda dialect: broken)
    with pytest.raises(Exception, match="already exists"):
        await open_store(f"sqlite:///{file}")
    monkeypatch.undo()
    assert _look(file)[0] == version
    assert (await _open_and_look(file))[0] == NEWEST


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
    _make_old(tmp_path / "old.db", 3)
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(OLD_ROWS.format(language=language, config=config, text=text))
    store = await open_store(f"sqlite:///{tmp_path / 'old.db'}")
    for asked in (None, language):
        assert [hit.language for hit in await search(store, query, language=asked)] == [language]
    assert await store.stats.integrity() is None
    await store.close()
