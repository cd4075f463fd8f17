"""Lists that go along an index, so that a small source costs nothing of a large one beside it."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

from afresh.store.sqlite import statements
from afresh.store.store import Store

_OUTCOMES = "page_crawls_by_outcome (run_id=? AND outcome=? AND id>?)"
BY_INDEX = {
    "page_records_of_one": "p USING INDEX pages_by_number (source_id=? AND id>?)",
    "pages_by_copies_of_one": "p USING INDEX pages_by_number (source_id=? AND id>?)",
    "pages_copied": "p USING INDEX pages_by_number (source_id=? AND id>?)",
    "page_records": "p USING INTEGER PRIMARY KEY (rowid>?)",
    "pages_by_copies": "p USING INTEGER PRIMARY KEY (rowid>?)",
    "change_records": "c USING INTEGER PRIMARY KEY (rowid<?)",
    "changes_of_source": "c USING INDEX changes_by_source (source_id=? AND id<?)",
    "changes_of_kind": "c USING INDEX changes_by_kind (source_id=? AND kind=? AND id<?)",
    "every_change_of_kind": "c USING INDEX changes_of_kind (kind=? AND id<?)",
    "changes_in_run": "c USING INDEX changes_by_run (run_id=? AND id<?)",
    "changes_of_kind_in_run": "c USING INDEX changes_by_run_and_kind (run_id=? AND kind=? AND id<?)",
    "changes_of_url": "c USING INDEX changes_of_url (url=? AND id<?)",
    "due_tally": "p USING INTEGER PRIMARY KEY (rowid=?)",
    "due_tally_of_few": "p USING INDEX pages_by_number (source_id=?)",
    "attempts_with_outcome": f"page_crawls USING INDEX {_OUTCOMES}",
}


@pytest.mark.parametrize("name", BY_INDEX)
def test_a_list_goes_along_an_index_and_is_not_sorted(name: str, sqlite_store: Store, sqlite_file: Path) -> None:
    with closing(sqlite3.connect(sqlite_file)) as connection:
        plan = connection.execute(f"explain query plan {statements()[name]}", defaultdict(lambda: "[]"))
        steps = [row[3] for row in plan]
    assert f"SEARCH {BY_INDEX[name]}" in steps
    assert not [step for step in steps if "TEMP B-TREE" in step]
