"""The outside reference: SQLite's FTS5 as it comes, one row per page, any of the words."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from afresh.search.evaluation import DEPTH
from eval.sets import Page

_BEST = "SELECT path FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"


def rankings(pages: Mapping[str, Page], queries: Sequence[str]) -> Iterator[list[str]]:
    """The best pages for each query."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE plain USING fts5(path UNINDEXED, text, tokenize='porter unicode61')")
        db.executemany("INSERT INTO plain VALUES (?, ?)", [(path, page.text) for path, page in pages.items()])
        for query in queries:
            words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
            yield [row[0] for row in db.execute(_BEST, (words, DEPTH))] if words else []
