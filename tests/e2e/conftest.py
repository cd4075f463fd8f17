"""What the end-to-end tests ask for: an empty site, a store file, a knowledge base on it."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from tests.e2e.library import opened

from afresh.core.errors import ExtractError
from afresh.engine.offload import Offload
from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

P = ParamSpec("P")
R = TypeVar("R")


class InProcess(Offload):
    """Does the work where it is asked for and counts it: a test need not wait for processes to start."""

    calls = 0

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a function, with the errors that the real one gives."""
        type(self).calls += 1
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise ExtractError(str(error)) from error


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
