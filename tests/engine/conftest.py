"""The store of the tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores import new_store

from afresh.store.store import SqlStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with new_store(tmp_path, SqlStore) as store:
        yield store
