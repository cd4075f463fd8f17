"""`afresh copy` and `afresh migrate`: the same rows in another store, whatever happens on the way."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened, rows
from tests.e2e.program import Program
from tests.postgres import Postgres

from afresh.cli import main
from afresh.cli.demo import SEARCHES, change
from afresh.errors import CopyStopped, IncompleteCopy, SchemaTooNew, StoreError, UsageError
from afresh.events import Event, MaintenanceProgress
from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES
from afresh.services.copy_store import copy_store
from afresh.store.copy import tables
from afresh.store.dialect import migrations
from afresh.store.open import migrate_store, open_store
from afresh.testing import TinySite

QUESTIONS = (*SEARCHES, "queue priorities", '"dead letter"', "retries*")


COPYING = {"to postgres": ("copy.commit=kill@6", "copy.filled=kill"), "to sqlite": ("copy.batch=kill@4",)}
_MADE: dict[str, Any] = {}  # a store that is made once


async def filled(store: Path) -> dict[str, Any]:
    """A store with a history, and what a reader sees of it."""
    if not _MADE:
        _MADE["told"] = await _filled(store)
        _MADE["file"] = store.read_bytes()
    else:
        store.write_bytes(_MADE["file"])
    found: dict[str, Any] = _MADE["told"]
    return found


async def _filled(store: Path) -> dict[str, Any]:
    """A site that was read, changed and read again, and a folder."""
    notes = store.parent / "notes"
    notes.mkdir()
    (notes / "odd.md").write_text("# Odd\n\nA note with a \0 in it, and ünïcödé, 数据库.\n")
    with TinySite.docs() as site:
        async with opened(store) as kb:
            await kb.runs.crawl(site.url, name="docs")
            change(site)
            await kb.runs.refresh(["docs"])
            await kb.runs.crawl(str(notes), name="notes", version="2")
            return await reported(kb)


async def reported(kb: KnowledgeBase) -> dict[str, Any]:
    """What a reader sees, down to the numbers."""
    found: dict[str, Any] = {"sources": [asdict(each) for each in await kb.sources.views()]}
    for label in [f"{each['name']}@{each['version']}".removesuffix("@None") for each in found["sources"]]:
        pages = await kb.pages.of_source(label, ALL_PAGES)
        found[label] = [asdict(page) for page in pages]
        found[f"links of {label}"] = [asdict(link) for link in await kb.links.of_source(label)]
        found[f"changes of {label}"] = [asdict(each) for each in await kb.pages.changes(label, limit=1000)]
        found[f"history of {label}"] = [asdict(each) for page in pages for each in await kb.pages.history(page.url)]
    for question in QUESTIONS:
        hits = (await kb.search.search(question, mode="text", limit=100)).hits
        found[question] = {hit.url for hit in hits}
        found[f"{question} nearest"] = [
            (hit.url, round(hit.score, 2)) for hit in (await kb.search.search(question, mode="vector", limit=5)).hits
        ]
    return found


def everything(store: Path) -> dict[str, list[Any]]:
    """All rows of all tables of a SQLite store."""
    return {
        table.name: rows(store, f"select {table.listed} from {table.name} order by {', '.join(table.key)}")
        for table in tables()
    }


async def look(store: Path, url: str) -> dict[str, Any]:
    """What a reader of another store sees."""
    async with opened(store, {"store.url": url}) as kb:
        return await reported(kb)


async def test_a_store_copied_to_postgres_and_back_is_the_same_row_by_row(
    store: Path, work: type[InProcess], postgres: Postgres
) -> None:
    before, url, back = await filled(store), await postgres.emptied(), store.with_name("back.db")
    there = await copy_store(f"sqlite:///{store}", url)
    assert there.sources == ("docs", "notes@2")
    assert {each.table: each.rows for each in there.tables} == {
        name: len(found) for name, found in everything(store).items()
    }
    assert_same(await look(store, url), before)
    again = await copy_store(url, f"sqlite:///{back}")
    assert again.tables == there.tables
    assert everything(back) == without_nul(everything(store))
    assert_sound(back)
    assert back.stat().st_mode & 0o777 == 0o600  # S6
    assert_same(await look(store, f"sqlite:///{back}"), before)


def assert_same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for what, value in wanted.items():
        assert found[what] == value, what


def without_nul(found: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows as they are after PostgreSQL has kept them."""
    return {
        name: [tuple(v.replace("\0", "") if isinstance(v, str) else v for v in row) for row in each]
        for name, each in found.items()
    }


async def test_a_copy_goes_on_with_new_numbers(store: Path, work: type[InProcess], postgres: Postgres) -> None:
    """Also where a model of that number, which is gone, had an index of shorter vectors."""
    await filled(store)
    url = await postgres.emptied()
    old = await asyncpg.connect(url)
    await old.execute("truncate vectors")  # what was deleted just now may still be indexed
    for model in (1, 2, 3):
        await old.execute(
            f"create index vectors_near_{model} on vectors using hnsw "
            f"((vector::halfvec(8)) halfvec_ip_ops) where model_id = {model}"
        )
    await old.close()
    await copy_store(f"sqlite:///{store}", url)
    with TinySite.docs() as site:
        async with opened(store, {"store.url": url}) as kb:
            report = await kb.runs.crawl(site.url, name="more")
            assert (report.state, report.new > 20) == ("completed", True)


@pytest.mark.parametrize("direction", COPYING)
async def test_a_copy_killed_on_the_way_goes_on_and_is_whole(
    direction: str, store: Path, work: type[InProcess], postgres: Postgres
) -> None:
    await filled(store)
    place, url = f"sqlite:///{store}", await postgres.emptied()
    if direction == "to sqlite":
        await copy_store(place, url)
        place, url = url, f"sqlite:///{store.with_name('back.db')}"
    program = Program(store)
    for number, point in enumerate(COPYING[direction]):
        again = ["--resume"] if number else []
        assert program.run("copy", place, url, *again, failpoints=point).code == -9
    with pytest.raises(IncompleteCopy, match="--resume"):
        await look(store, url)  # half a store answers nobody
    with pytest.raises(StoreError, match="--resume"):
        await copy_store(place, url)
    with pytest.raises(StoreError, match="incomplete copy of"):
        await copy_store(place, url, labels=["docs"], resume=True)
    written: list[str] = []

    def receive(event: Event) -> None:
        if isinstance(event, MaintenanceProgress) and "compared" not in event.what:
            written.append(event.what)

    done = await copy_store(place, url, resume=True, listener=receive)
    assert "rows of sources" not in written  # those were there
    assert bool(written) == (direction == "to sqlite")  # else only comparing was left
    assert [each.rows for each in done.tables] == [len(each) for each in everything(store).values()]
    with pytest.raises(StoreError, match="the target is not empty"):
        await copy_store(place, url, resume=True)


async def test_one_source_is_copied_alone(store: Path, work: type[InProcess]) -> None:
    before, part = await filled(store), store.with_name("part.db")
    done = await copy_store(f"sqlite:///{store}", f"sqlite:///{part}", labels=["notes@2"])
    assert done.sources == ("notes@2",)
    assert rows(part, "select name, version from sources") == [("notes", "2")]
    assert rows(part, "select distinct source_id from pages") == rows(part, "select id from sources")
    assert 0 < len(rows(part, "select id from vectors")) < len(rows(store, "select id from vectors"))
    assert_sound(part)
    found = await look(store, f"sqlite:///{part}")
    assert found["notes@2"] == before["notes@2"]
    assert found["history of notes@2"] == before["history of notes@2"]


async def test_a_copy_that_is_stopped_says_how_to_go_on(store: Path, work: type[InProcess]) -> None:
    await filled(store)
    stopping, target = asyncio.Event(), f"sqlite:///{store.with_name('two.db')}"
    with pytest.raises(CopyStopped, match="--resume"):
        await copy_store(f"sqlite:///{store}", target, stopping=stopping, listener=lambda _: stopping.set())
    await copy_store(f"sqlite:///{store}", target, resume=True)
    assert everything(store.with_name("two.db")) == everything(store)


async def test_a_row_that_differs_is_found(store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    from afresh.store import copy

    await filled(store)
    write = copy.SqliteEndpoint.write

    async def spoiled(self: Any, table: Any, found: Any) -> None:
        changed = [(*row[:3], "x", *row[4:]) for row in found] if table.name == "pages" else found
        await write(self, table, changed)

    monkeypatch.setattr(copy.SqliteEndpoint, "write", spoiled)
    target = f"sqlite:///{store.with_name('two.db')}"
    with pytest.raises(StoreError, match=r"differs in pages: the origin has .* rows"):
        await copy_store(f"sqlite:///{store}", target)
    with pytest.raises(IncompleteCopy):
        await look(store, target)


async def test_a_store_is_not_copied_onto_itself_or_onto_another(store: Path, work: type[InProcess]) -> None:
    await filled(store)
    with pytest.raises(UsageError, match="the same"):
        await copy_store(f"sqlite:///{store}", f"sqlite:///{store.parent}/./{store.name}")
    full = store.with_name("full.db")
    await copy_store(f"sqlite:///{store}", f"sqlite:///{full}")
    with pytest.raises(StoreError, match="the target is not empty"):
        await copy_store(f"sqlite:///{store}", f"sqlite:///{full}")
    assert everything(full) == everything(store)


# ---- migrate


NEXT = "create table laters (id {pk}, at {time})"


def later_afresh(monkeypatch: pytest.MonkeyPatch, dialect: str) -> int:
    """Let the schema have another step, and return its number."""
    steps = migrations(dialect)
    steps = [*steps, (steps[-1][0] + 1, NEXT)]
    for module in ("open", "sqlite_file" if dialect == "sqlite" else "postgres"):
        monkeypatch.setattr(f"afresh.store.{module}.migrations", lambda _: steps)
    return steps[-1][0]


async def test_an_older_store_is_brought_forward_and_a_newer_left_alone(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{store}"
    await (await open_store(url)).close()
    [(old,)] = rows(store, "pragma user_version")
    newest = later_afresh(monkeypatch, "sqlite")
    planned = await migrate_store(url, dry_run=True)
    assert (planned.before, planned.after, planned.newest) == (old, old, newest)
    assert rows(store, "pragma user_version") == [(old,)]
    assert await asyncio.to_thread(main, ["migrate", "--store", url]) == 0
    assert f"was upgraded from schema {old} to {newest}" in capsys.readouterr().out
    assert (await migrate_store(url)).before == newest
    monkeypatch.undo()
    with pytest.raises(SchemaTooNew, match="newer afresh"):
        await migrate_store(url)
    assert rows(store, "pragma user_version") == [(newest,)]


def test_a_store_that_is_too_old_is_refused_by_every_command(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("create table sources (id integer primary key)")
        connection.execute("pragma user_version = 3")
    program = Program(store)
    for words in (("migrate",), ("status",), ("crawl", "https://docs.example.org/")):
        refused = program.run(*words)
        assert refused.code == 2, refused
        assert "written by a much older afresh (schema 3" in refused.err
        assert "crawl again" in refused.err
    assert rows(store, "pragma user_version") == [(3,)]


async def test_a_postgres_store_is_brought_forward_and_a_newer_left_alone(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with postgres.bare() as url:
        await (await open_store(url)).close()
        old = migrations("postgres")[-1][0]
        newest = later_afresh(monkeypatch, "postgres")
        assert (await migrate_store(url, dry_run=True)).before == old
        done = await migrate_store(url)
        assert (done.before, done.after) == (old, newest)
        connection = await asyncpg.connect(url)
        assert await connection.fetchval("select version from afresh_schema") == newest
        await connection.close()
        monkeypatch.undo()
        with pytest.raises(SchemaTooNew, match="newer afresh"):
            await migrate_store(url)
