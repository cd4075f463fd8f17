"""kill -9 while vectors are made: what was kept is not paid for again, and the index is a clean one."""

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.library import assert_sound, index_of, rows
from tests.e2e.mortal import live
from tests.e2e.remote import BATCH, flags_for, paid
from tests.e2e.sites import lay
from tests.e2e.test_kill import tree
from tests.fakes.embedding_server import EmbeddingServer

from afresh.testing import TinySite

KILLED = -signal.SIGKILL
PAGES = 16
VECTORS = "select m.name, v.text_hash from vectors v join models m on m.id = v.model_id order by 1, 2"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """An embedding API on loopback."""
    with EmbeddingServer() as server:
        yield server


@pytest.mark.parametrize(("point", "twice"), [("page.chunked", BATCH), ("embed.made", BATCH), ("embed.kept", 0)])
def test_F03_F04_killed_while_vectors_are_made_the_next_run_pays_for_one_batch_again_at_most(
    point: str, twice: int, server: EmbeddingServer, tiny: TinySite, store: Path, tmp_path: Path
) -> None:
    lay(tiny, tree(PAGES))
    flags = flags_for(server)
    assert live(store, tiny.url, "crawl", f"{point}=kill@4", flags) == KILLED
    assert_sound(store, stable=False)
    kept = rows(store, "select count(*) from vectors")[0][0]
    assert kept > 0
    assert live(store, tiny.url, "crawl", flags=flags) == 0
    assert_sound(store)
    counted = paid(server)
    assert counted.total() - len(counted) <= twice
    assert len(counted) == PAGES == rows(store, "select count(*) from vectors")[0][0]
    assert live(tmp_path / "clean.db", tiny.url, "crawl", flags=flags) == 0
    assert index_of(store) == index_of(tmp_path / "clean.db")
    assert rows(store, VECTORS) == rows(tmp_path / "clean.db", VECTORS)


REMAKING = ["reindex.cut", "reindex.embedded"]


@pytest.mark.parametrize("point", REMAKING)
def test_F04_a_reindex_that_is_killed_goes_on_and_the_old_index_answers_until_then(
    point: str, server: EmbeddingServer, tiny: TinySite, store: Path
) -> None:
    lay(tiny, tree(PAGES))
    assert live(store, tiny.url, "crawl", flags={"embedding.provider": "none"}) == 0
    before = index_of(store)
    with closing(sqlite3.connect(store)) as connection:
        if point == "reindex.cut":
            connection.execute("update pages set chunker = 'an older one'")
        connection.commit()
    tiny.requests.clear()
    assert live(store, "", "reindex", f"{point}=kill", flags_for(server)) == KILLED
    assert_sound(store)
    assert index_of(store) == before
    assert rows(store, "select name from models where serving = 1") == []
    assert live(store, "", "reindex", flags=flags_for(server)) == 0
    assert rows(store, "select count(*) from models where serving = 1") == [(1,)]
    assert_sound(store)
    assert index_of(store) == before
    counted = paid(server)
    assert counted.total() - len(counted) <= BATCH
    assert len(tiny.requests) == 0, "nothing is fetched"
