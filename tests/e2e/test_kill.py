"""kill -9 at any moment: the next command goes on, and the index is that of an undisturbed crawl."""

import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import Held, assert_sound, index_of, opened, rows
from tests.e2e.mortal import live, start
from tests.e2e.program import DeadlySite, Program, committed, ended
from tests.e2e.sites import lay, looks, page
from tests.fakes.killer import Killer

from afresh.ops.failpoints import POINTS
from afresh.testing import TinySite

PAGES = 60
# Ten moments: pages answered in that life of the process, and how many of them are written when it dies.
MOMENTS = [(0, 0), (1, 0), (1, 1), (3, 0), (3, 2), (5, 5), (6, 0), (8, 4), (9, 1), (10, 10)]
IN_FLIGHT = 16  # pages that a worker of three lanes per host holds at most
KILLED = -signal.SIGKILL


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


async def undisturbed(site: TinySite, folder: Path) -> dict[str, Held]:
    """The index that a crawl without trouble gives."""
    async with opened(folder / "undisturbed.db") as kb:
        await kb.runs.crawl(site.url, name="docs")
    return index_of(folder / "undisturbed.db")


@pytest.mark.slow
async def test_P1_P2_a_crawl_killed_at_ten_moments_ends_as_if_undisturbed(
    deadly: DeadlySite, store: Path, work: type[InProcess]
) -> None:
    """Ten kills in one crawl by the command line, by the pages asked for or by the pages written so far."""
    program = Program(store, in_process=True)
    before = 0
    for free, written in MOMENTS:
        process = program.start("crawl", deadly.url, "--name", "docs", "--json")
        deadly.aim(process, store, free, written)
        result = ended(process)
        assert result.code == KILLED, result
        assert committed(store) >= before + written  # nothing that was written is lost
        before = committed(store)
    last = program.run("crawl", deadly.url, "--name", "docs", "--json")
    assert (last.code, last.report["state"], last.report["run"]) == (0, "completed", 1)
    assert "continuing run 1" in last.err
    asked = looks(deadly)
    assert_sound(store)
    deadly.victim = None
    assert index_of(store) == await undisturbed(deadly, store.parent)
    assert len(index_of(store)) == PAGES == last.report["new"]
    assert max(asked.values()) <= 1 + len(MOMENTS)
    assert sum(asked.values()) <= PAGES + len(MOMENTS) * IN_FLIGHT
    assert rows(store, "select count(*) from changes where kind = 'new'") == [(PAGES,)]


# ---- one kill, anywhere -----------------------------------------------------------------------

CHANGES = [("changed", 2), ("deleted", 1), ("moved", 1), ("new", 1)]  # what moved is not new (G12)
MISSED = "select count(*), sum(missing_count) from pages where missing_count > 0"


@dataclass(frozen=True)
class Changed:
    """A site that changed since it was crawled: the store of then, and the indexes of then and now."""

    site: TinySite
    store: Path
    then: dict[str, Held]
    now: dict[str, Held]

    def copied(self, to: Path) -> Path:
        """The store as it was before the refresh, for one test to spoil."""
        self.site.requests.clear()
        return Path(shutil.copy(self.store, to))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changed]:
    """Twelve pages of which one is edited, one is new, one gone, one moved and two no longer linked."""
    folder = tmp_path_factory.mktemp("changed")
    with TinySite() as site:
        lay(site, tree(12))
        assert live(folder / "then.db", site.url, "crawl") == 0
        site.put("/t2", page("/t2", ["/", "/t9", "/fresh"], "other words"))  # /t10 and /t11 are left out
        lay(site, {"/fresh": []})
        site.put("/t1", page("/t1", tree(12)["/t1"], "an edit"))
        site.delete("/t8")
        site.move("/t7", "/moved")
        shutil.copy(folder / "then.db", folder / "now.db")
        assert live(folder / "now.db", site.url, "refresh") == 0
        yield Changed(site, folder / "then.db", index_of(folder / "then.db"), index_of(folder / "now.db"))


ELSEWHERE = ("confirm.", "reindex.", "kb.", "links.", "copy.", "sync.")  # not reached by a plain refresh
AT_ANY_POINT = [point for point in POINTS if not point.startswith(ELSEWHERE)]


@pytest.mark.parametrize("point", AT_ANY_POINT)
def test_F01_F02_F03_F05_F06_killed_at_any_point_a_refresh_goes_on_as_if_undisturbed(
    point: str, changed: Changed, store: Path
) -> None:
    changed.copied(store)
    assert live(store, changed.site.url, "refresh", f"{point}=kill") == KILLED
    assert_sound(store, stable=False)
    assert live(store, changed.site.url, "refresh") == 0
    assert max(looks(changed.site).values()) <= 2
    if point == "finish.done":  # that run was over, so this one is the next
        assert len(rows(store, "select id from runs")) == 3
    else:
        assert rows(store, MISSED) == [(2, 2)]  # absence is counted once per run, however often it goes on
    assert_sound(store)
    assert index_of(store) == changed.now
    reported = "select kind, count(*) from changes where run_id > 1 group by kind order by kind"
    assert rows(store, reported) == CHANGES


CONFIRMING = ["confirm.begin", "finish.closed", "finish.drop", "finish.done"]


@pytest.mark.parametrize("point", CONFIRMING)
def test_P5_a_confirmation_that_was_killed_is_whole_or_can_be_given_again(
    point: str, changed: Changed, store: Path
) -> None:
    changed.copied(store)
    braked = {"policy.brake_pages": 0, "policy.brake_percent": 0}
    assert live(store, changed.site.url, "refresh", flags=braked) == 0
    assert rows(store, "select state from runs where id = 2") == [("needs_confirmation",)]
    assert live(store, "2", "confirm", f"{point}=kill") == KILLED
    assert_sound(store)
    if point != "finish.done":
        assert set(index_of(store)) > set(changed.now)
        assert live(store, "2", "confirm") == 0
    assert index_of(store) == changed.now


# ---- many kills, by chance ---------------------------------------------------------------------


@pytest.mark.slow
def test_F09_twenty_kills_by_chance_in_one_crawl_leave_no_trace(store: Path, tmp_path: Path) -> None:
    killer = Killer(seed=20261, seconds=0.5, hits=40)
    print(killer)
    with TinySite() as site:
        lay(site, tree(PAGES))
        while killer.kills < 20:
            killer.strike(partial(start, store, site.url, "refresh" if killer.survived else "crawl"))
            if store.exists() and rows(store, "select 1 from sqlite_master where name = 'pages'"):
                assert_sound(store, stable=False)
        assert live(store, site.url, "crawl") == 0
        assert live(tmp_path / "clean.db", site.url, "crawl") == 0
    assert index_of(store) == index_of(tmp_path / "clean.db"), killer
    assert len(index_of(store)) == PAGES
    assert rows(store, "select count(*) from changes where kind = 'new'") == [(PAGES,)]
    assert_sound(store)


# ---- what a kill leaves behind -----------------------------------------------------------------


async def test_P1_the_processes_of_a_killed_crawl_end_with_it(deadly: DeadlySite, store: Path) -> None:
    """The parsers notice that nobody will call any more; none stays behind."""
    children: list[psutil.Process] = []
    process = Program(store).start("crawl", deadly.url, "--name", "docs")
    me = psutil.Process(process.pid)
    deadly.aim(process, store, 3, 1, lambda: children.extend(me.children(recursive=True)))
    assert ended(process).code == KILLED
    assert children
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


async def test_P3_F26_a_lock_whose_process_is_gone_is_taken_over_at_once(deadly: DeadlySite, store: Path) -> None:
    """B7: the abandoned attempts stay in the history with their reason."""
    program = Program(store, in_process=True)
    process = program.start("crawl", deadly.url, "--name", "docs")
    deadly.aim(process, store, 5)
    ended(process)
    held = rows(store, "select id from page_crawls where locked_by is not null")
    assert held
    assert program.run("crawl", deadly.url, "--name", "docs").code == 0
    outcomes = rows(store, "select id, outcome, error_message from page_crawls where outcome = 'abandoned' order by id")
    assert {crawl for crawl, *_ in outcomes} == {crawl for (crawl,) in held}
    assert all("the worker stopped before it finished" in message for *_, message in outcomes)
