"""The store of the tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores import new_store

from afresh.store.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with new_store(tmp_path, Store) as store:
        yield store
