"""A browser, and servers to look at, each started once for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.e2e.library import in_database
from tests.postgres import Postgres
from tests.server.web.showroom import Stand, browser, elsewhere, standing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect.set_options(timeout=20_000)  # a machine that does other things as well still gets there


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """The browser."""
    with browser() as made:
        yield made


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A server over each database, with something of everything in it."""
    store: Path = tmp_path_factory.mktemp("web") / "store.db"
    if request.param == "sqlite":
        with standing(store) as made:
            yield made
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    with in_database(store, elsewhere(postgres.emptied)), standing(store) as made:
        yield made
