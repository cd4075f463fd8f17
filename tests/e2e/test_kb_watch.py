"""The knowledge base while afresh runs on: files, the list and ticks, each by its switch and in its time."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.kb_files import LONG_AGO, Base, asked, now, page, wait_of
from tests.e2e.kb_watching import Watching
from tests.fakes.chat_server import ChatServer

from afresh.testing import TinySite

QUICK = {"runtime_refresh_tick_seconds": 0.1, "file_watch_debounce_seconds": 0.05, "links_watch_debounce_seconds": 0.05}


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str], tiny: TinySite) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(tmp_path, capsys, chat, **QUICK)
        base.note("a.md", "# Apples\n")
        base.note("b.md", "# Boats\n")
        tiny.put("/x", page("xylophones"))
        base.list(tiny.at("/x"))
        yield base


@pytest.fixture
def watching(base: Base) -> Iterator[Watching]:
    watching = Watching(base)
    yield watching
    if watching.process.poll() is None:
        watching.stop()


def test_E14_E27_E28_E29_E30_E31_while_it_runs_files_links_and_ticks_keep_both_files_fresh(
    base: Base, tiny: TinySite, watching: Watching
) -> None:
    watching.report("kb/files", new=2)
    assert len(base.sources) == 3
    assert watching.watched(2) == {"kb/files", "kb/links"}
    base.note("a.md", "# Anchors\n", at=LONG_AGO + 5)
    assert watching.report("kb/files", changed=1)["checked"] == 1  # and no other file
    assert "Anchors" in base.sources["a.md"]["summary_text"]
    (base.notes / "b.md").rename(base.notes / "c.md")
    watching.report("kb/files", deleted=1)
    assert "b.md" not in base.index.read_text()
    tiny.put("/y", page("yachts"))
    base.links.write_text(f"{tiny.at('/y')}\n")
    os.utime(base.links, (LONG_AGO + 9, LONG_AGO + 9))
    watching.report("kb/links", new=1)  # by a tick
    assert [name for name in base.sources if "://" in name] == [tiny.at("/y")]
    base.let_time_pass(tiny.at("/y"))  # by hand, while it runs
    tiny.put("/y", page("yaks"))
    watching.report("kb/links", changed=1)
    assert "yaks" in base.index.read_text()
    assert watching.stop() == 0
    assert asked(tiny) == ["/x", "/y", "/y"]


def test_E27_G7_a_cache_that_is_taken_away_while_it_runs_comes_back_with_all_its_files(
    base: Base, tiny: TinySite, watching: Watching
) -> None:
    watching.report("kb/links", new=1)
    assert watching.watched(2) == {"kb/files", "kb/links"}
    tiny.put("/x", page("yaks"))
    base.cache.unlink()
    watching.report("kb/links", changed=1)  # by a tick
    assert sorted(base.sources) == sorted(["a.md", "b.md", tiny.at("/x")])
    assert watching.stop() == 0


def test_E27_without_runtime_refresh_the_start_is_all_there_is(base: Base) -> None:
    base.configure(runtime_refresh_enabled=False)
    done = base.program.run("watch", "--kb")
    assert (done.code, len(base.sources)) == (0, 3)


@pytest.mark.parametrize(("off", "left"), [("file_watch_enabled", "kb/links"), ("links_watch_enabled", "kb/files")])
def test_E28_E29_what_is_switched_off_is_not_followed(base: Base, tiny: TinySite, off: str, left: str) -> None:
    base.configure(**QUICK, **{off: False})
    watching = Watching(base)
    try:
        assert watching.watched(1) == {left}
        if left == "kb/links":
            base.note("a.md", "# Anchors\n", at=LONG_AGO + 5)
        tiny.put("/y", page("yachts"))
        base.list(tiny.at("/x"), tiny.at("/y"))
        if left == "kb/files":
            base.note("b.md", "# Barges\n", at=LONG_AGO + 5)
        watching.report(left, **{"new" if left == "kb/links" else "changed": 1})
        assert "Apples" in base.index.read_text()
        assert (tiny.at("/y") in base.sources) == (left == "kb/links")
    finally:
        assert watching.stop() == 0
    assert watching.watched() == set()


def test_E30_a_tick_asks_for_no_more_links_than_its_budget(base: Base, tiny: TinySite) -> None:
    names = [f"/p{number}" for number in range(5)]
    for name in names:
        tiny.put(name, page(name))
    base.list(*map(tiny.at, names))
    base.configure(
        **QUICK,
        sources_dir=None,
        links_watch_enabled=False,
        url_refresh_budget_per_init=0,
        url_refresh_budget_per_tick=2,
    )
    watching = Watching(base)
    try:
        assert [watching.report("kb/links")["new"] for _ in range(3)] == [2, 2, 1]
    finally:
        assert watching.stop() == 0
    assert sorted(asked(tiny)) == names


def test_E28_E29_a_storm_of_events_is_one_update_once_it_is_over(base: Base, tiny: TinySite) -> None:
    base.configure(file_watch_debounce_seconds=0.5, links_watch_debounce_seconds=0.5)
    watching = Watching(base)
    try:
        watching.watched(2)
        paid = base.chat.calls
        for number in range(30):
            base.note("a.md", f"# Anchors {number}\n", at=LONG_AGO + 5 + number)
        assert watching.report("kb/files")["checked"] == 1
        assert base.chat.calls == paid + 1
        for number in range(30):
            base.list(*(tiny.at(f"/{each}") for each in range(number)))
        base.list(tiny.at("/z"))
        assert watching.report("kb/links")["deleted"] == 1
        assert [name for name in base.sources if "://" in name] == [tiny.at("/z")]
        added = base.url(tiny.at("/z"))  # due now, and left to the next tick
        assert (added["consecutive_failures"], wait_of(added, now()) <= 0) == (0, True)
        assert asked(tiny) == ["/x"]
    finally:
        assert watching.stop() == 0
    assert base.sources["a.md"]["file"]["mtime_ns"] == (LONG_AGO + 34) * 10**9
    assert not [message for message in watching.rest() if "source" in message], "one update each"
