"""kill -9 at any moment: the next command goes on, and the index is that of an undisturbed crawl."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import Held, assert_sound, index_of, opened, rows
from tests.e2e.program import DeadlySite, Program, committed, ended
from tests.e2e.sites import lay, looks, page

PAGES = 60
# Ten moments: pages answered in that life of the process, and how many of them are written when it dies.
MOMENTS = [(0, 0), (1, 0), (1, 1), (3, 0), (3, 2), (5, 5), (6, 0), (8, 4), (9, 1), (10, 10)]
IN_FLIGHT = 16  # pages that a worker of three lanes per host holds at most


def tree(number: int) -> dict[str, list[str]]:
    """Pages in a tree of branches of four, each linking home and to its children."""
    paths = ["/", *(f"/t{index}" for index in range(1, number))]
    return {path: ["/", *paths[4 * index + 1 : 4 * index + 5]] for index, path in enumerate(paths)}


@pytest.fixture
def deadly() -> Iterator[DeadlySite]:
    """A tree of sixty pages behind a server that can kill."""
    with DeadlySite() as site:
        lay(site, tree(PAGES))
        yield site


async def undisturbed(site: DeadlySite, folder: Path) -> dict[str, Held]:
    """The index that a crawl without trouble gives."""
    site.victim = None
    async with opened(folder / "undisturbed.db") as kb:
        await kb.crawl(site.url, name="docs")
    return index_of(folder / "undisturbed.db")


async def test_P1_P2_a_crawl_killed_at_ten_moments_ends_as_if_undisturbed(
    deadly: DeadlySite, store: Path, work: type[InProcess]
) -> None:
    """F01, F02, F09: ten kills in one crawl, by the pages asked for or by the pages written so far."""
    program = Program(store)
    before = 0
    for free, written in MOMENTS:
        process = program.start("crawl", deadly.url, "--name", "docs", "--json")
        deadly.aim(process, store, free, written)
        result = ended(process)
        assert result.code == -signal.SIGKILL, result
        assert committed(store) >= before + written  # nothing that was written is lost
        before = committed(store)
    last = program.run("crawl", deadly.url, "--name", "docs", "--json")
    assert (last.code, last.report["state"], last.report["run"]) == (0, "completed", 1)
    assert "going on with run 1" in last.err
    asked = looks(deadly)
    assert_sound(store)
    assert index_of(store) == await undisturbed(deadly, store.parent)
    assert len(index_of(store)) == PAGES == last.report["new"]
    assert max(asked.values()) <= 1 + len(MOMENTS)
    assert sum(asked.values()) <= PAGES + len(MOMENTS) * IN_FLIGHT
    assert rows(store, "select count(*) from changes where kind = 'new'") == [(PAGES,)]


STATEMENTS = [
    pytest.param("insert_source:1", id="before-the-run"),
    pytest.param("insert_run:1", id="run-begun"),
    pytest.param("lock_crawls:2", id="F01-claimed"),
    pytest.param("stamp_crawl:2", id="F05-attempt-stamped"),
    pytest.param("insert_chunk:2", id="F05-chunks-written"),
    pytest.param("insert_page_link:2", id="F05-links-written"),
    pytest.param("open_crawl:3", id="F05-children-queued"),
    pytest.param("count_run:2", id="F05-counted-not-committed"),
    pytest.param("record_missing:1", id="in-the-sweep"),
    pytest.param("finish_run:1", id="before-the-end"),
]


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_F05_F06_killed_behind_any_statement_a_page_is_whole_or_absent(
    statement: str, store: Path, work: type[InProcess]
) -> None:
    with DeadlySite() as site:
        lay(site, tree(20))
        program = Program(store, in_process=True)
        killed = program.run("crawl", site.url, "--name", "docs", "--json", kill_after=statement)
        assert killed.code == -signal.SIGKILL, killed
        half = (
            "select url from pages where content_hash is not null and id not in (select page_id from chunks)"
        )
        assert rows(store, half) == []
        last = program.run("crawl", site.url, "--name", "docs", "--json")
        assert (last.code, last.report["state"]) == (0, "completed"), last
        assert max(looks(site).values()) <= 2
        assert_sound(store)
        assert index_of(store) == await undisturbed(site, store.parent)
        assert rows(store, "select count(*) from changes where kind = 'new'") == [(20,)]


@pytest.mark.parametrize("statement", ["lock_crawls:1", "insert_chunk:1", "drop_page:1", "finish_run:1"])
async def test_P1_a_refresh_that_was_killed_ends_as_if_undisturbed(
    statement: str, store: Path, work: type[InProcess]
) -> None:
    """Edited, new, dead and moved pages, killed while they are taken in or let go."""
    with DeadlySite() as site:
        lay(site, tree(20))
        program = Program(store, in_process=True)
        assert program.run("crawl", site.url, "--name", "docs").code == 0
        site.put("/t2", page("/t2", [*tree(20)["/t2"], "/fresh"], "other words"))
        lay(site, {"/fresh": []})
        site.delete("/t19")
        site.move("/t18", "/moved")
        site.requests.clear()
        killed = program.run("refresh", "docs", kill_after=statement)
        assert killed.code == -signal.SIGKILL, killed
        last = program.run("refresh", "docs", "--json")
        assert last.code == 0, last
        assert max(looks(site).values()) <= 2
        assert_sound(store)
        assert index_of(store) == await undisturbed(site, store.parent)
        found = rows(store, "select kind, count(*) from changes where run_id > 1 group by kind order by kind")
        assert found == [("changed", 1), ("deleted", 1), ("moved", 1), ("new", 2)]


async def test_P1_the_processes_of_a_killed_crawl_end_with_it(deadly: DeadlySite, store: Path) -> None:
    """The parsers notice that nobody will call any more; none stays behind."""
    children: list[psutil.Process] = []
    process = Program(store).start("crawl", deadly.url, "--name", "docs")
    me = psutil.Process(process.pid)
    deadly.aim(process, store, 3, 1, lambda: children.extend(me.children(recursive=True)))
    assert ended(process).code == -signal.SIGKILL
    assert children
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


async def test_P3_a_lock_whose_process_is_gone_is_taken_over_at_once(deadly: DeadlySite, store: Path) -> None:
    """B7, F26: the abandoned attempts stay in the history with their reason."""
    program = Program(store)
    process = program.start("crawl", deadly.url, "--name", "docs")
    deadly.aim(process, store, 5)
    ended(process)
    held = rows(store, "select id from page_crawls where locked_by is not null")
    assert held
    assert program.run("crawl", deadly.url, "--name", "docs").code == 0
    outcomes = rows(
        store, "select id, outcome, error_message from page_crawls where outcome = 'abandoned' order by id"
    )
    assert {crawl for crawl, *_ in outcomes} == {crawl for (crawl,) in held}
    assert all("the worker stopped before it finished" in message for *_, message in outcomes)
