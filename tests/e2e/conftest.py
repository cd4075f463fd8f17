"""What the end-to-end tests ask for: an empty site, a store file, a knowledge base on it."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import in_database, opened
from tests.postgres import Postgres

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

USUAL = os.environ.get("AFRESH_TEST_STORE", "sqlite")  # `postgres` tries what is not for every store there, too

# Files that `make test` runs too, some for each kind of source; `make test-all` runs all of this folder.
QUICK = {
    *("test_archive.py", "test_deletion_safety.py", "test_first_crawl.py", "test_folder.py", "test_git_source.py"),
    *("test_kb_files.py", "test_library.py", "test_link_list.py", "test_mcp_http.py", "test_redirects.py"),
    *("test_refresh.py", "test_rules.py", "test_schedule.py", "test_search_answers.py", "test_sync.py"),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the other files of this folder as slow."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in QUICK:
            item.add_marker("slow")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> type[InProcess]:
    """Extraction and chunking in this process, counted."""
    InProcess.calls = 0
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    return InProcess


@pytest.fixture
def tiny() -> Iterator[TinySite]:
    """An empty site."""
    with TinySite() as site:
        yield site


@pytest.fixture
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """Where the store of this test will be: a file, and a database too if the test is for every store."""
    place = tmp_path / "kb.db"
    if getattr(request, "param", USUAL) == "sqlite":
        yield place
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with in_database(place, await server.emptied()):
            yield place


@pytest.fixture
async def kb(store: Path, work: type[InProcess]) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base on an empty store."""
    async with opened(store) as kb:
        yield kb
