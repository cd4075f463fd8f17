"""The SQL of docs/explanation/scale.md does what the page says, and afresh goes on with what it leaves."""

import re
from pathlib import Path

import asyncpg
import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, opened, rows, url_of
from tests.e2e.sites import lay, star

from afresh.testing import TinySite

DOC = (Path(__file__).parents[2] / "docs" / "explanation" / "scale.md").read_text("utf-8")
DELETES, ARCHIVES = re.findall(r"```sql\n(.*?)```", DOC, re.DOTALL)
OLDER = "update page_crawls set completed_at = completed_at - interval '100 days' where outcome is not null"


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
async def test_a_history_can_be_let_go_of_or_kept_elsewhere_while_afresh_goes_on(
    tiny: TinySite, store: Path, work: type[InProcess]
) -> None:
    lay(tiny, star(3))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        for sql, past in ((DELETES, 0), (ARCHIVES, 8)):
            for _ in range(2):
                [report] = await kb.runs.refresh(["docs"])
                assert counts(report) == {"not_modified": 4}
            await _run(url_of(store), OLDER)
            await _run(url_of(store), sql)
            history = await kb.pages.history(tiny.at("/p1"))
            assert [attempt.outcome for attempt in history if attempt.outcome] == ["not_modified"]
            assert await _past(store) == past
        assert (await kb.status.get()).in_flight == 0
    assert_sound(store)
    await _run(url_of(store), "drop table page_crawls_past")


async def _past(store: Path) -> int:
    if rows(store, "select to_regclass('page_crawls_past') is null") == [(True,)]:
        return 0
    return int(rows(store, "select count(*) from page_crawls_past")[0][0])


async def _run(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
