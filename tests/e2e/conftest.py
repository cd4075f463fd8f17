"""What the end-to-end tests ask for: an empty site, a store file, a knowledge base on it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> type[InProcess]:
    """Extraction and chunking in this process, counted."""
    InProcess.calls = 0
    monkeypatch.setattr("afresh.app.Offload", InProcess)
    return InProcess


@pytest.fixture
def tiny() -> Iterator[TinySite]:
    """An empty site."""
    with TinySite() as site:
        yield site


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store of this test will be."""
    return tmp_path / "kb.db"


@pytest.fixture
async def kb(store: Path, work: type[InProcess]) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base on an empty store."""
    async with opened(store) as kb:
        yield kb
