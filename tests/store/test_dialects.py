"""One store, two dialects: the same statements, and PostgreSQL takes every one of them."""

import re

import asyncpg
from tests.postgres import Postgres

from afresh.store.dialect import migrations, queries, statement
from afresh.store.postgres import portable

# What only one of them needs: vectors are compared here or by the server, and only SQLite checks its index.
ONLY_SQLITE = {
    *("check_english", "check_simple", "integrity", "not_indexed", "match_inside_english", "match_inside_simple"),
    *("add_block", "blocks_between", "drop_blocks", "mark_coded", "models_and_newest", "newest_vector"),
    *("chunks_of_vectors", "chunks_of_vectors_within", "vectors_after", "vectors_by_id", "vectors_of_blocks"),
    "vectors_of_pages",
}
ONLY_POSTGRES = {
    *("broken_indexes", "many_vectors", "middle", "near_index", "nearest", "nearest_by_index"),
    *("size", "texts"),
}


def test_both_dialects_know_the_same_statements() -> None:
    assert set(queries("sqlite")) - set(queries("postgres")) == ONLY_SQLITE
    assert set(queries("postgres")) - set(queries("sqlite")) == ONLY_POSTGRES


async def test_postgres_takes_every_statement_with_the_types_of_its_parameters(postgres: Postgres) -> None:
    """Where this fails for a new parameter, give its name a type in `store/dialect.py`."""
    connection = await asyncpg.connect(await postgres.emptied())
    try:
        for name in queries("postgres"):
            try:
                await connection.prepare(statement(name).text)
            except asyncpg.PostgresError as error:
                raise AssertionError(f"{name}: {error}") from error
    finally:
        await connection.close()


async def test_numbers_have_64_bits_and_texts_the_order_of_their_bytes(postgres: Postgres) -> None:
    connection = await asyncpg.connect(await postgres.emptied())
    try:
        columns = await connection.fetch(
            "select table_name, column_name, data_type, collation_name from information_schema.columns "
            "where table_schema = 'public' and data_type in ('integer', 'smallint', 'text', 'real')"
        )
    finally:
        await connection.close()
    assert len(columns) > 50
    assert {row["data_type"] for row in columns} == {"text"}
    assert [row["column_name"] for row in columns if row["collation_name"] != "C"] == []


def test_every_migration_is_put_into_words_of_postgres() -> None:
    for number, script in migrations("postgres"):
        words = portable(script)
        assert not re.search(r"\binteger\b|\{\w+\}|autoincrement|without rowid", words), number
