"""The knowledge base when its process is killed, when two write at once, and while it is watched."""

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.kb_files import LONG_AGO, Base, asked, page
from tests.e2e.library import assert_sound
from tests.e2e.program import PATIENCE, ended

from afresh.testing import ChatServer, TinySite


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str], tiny: TinySite) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(tmp_path, capsys, chat)
        base.note("a.md", "# Apples\n")
        base.note("b.md", "# Boats\n")
        tiny.put("/x", page("xylophones"))
        base.list(tiny.at("/x"))
        yield base


@pytest.mark.parametrize(
    "point", ["page.prepared", "commit.done", "finish.done@2", "kb.cache", "kb.index", "kb.written"]
)
def test_E7_killed_at_any_moment_the_next_update_has_both_files_whole_and_pays_nothing_twice(
    base: Base, point: str
) -> None:
    name, _, hit = point.partition("@")
    dead = base.program.run("init-kb", failpoints=f"{name}=kill{'@' + hit if hit else ''}")
    assert dead.code == -signal.SIGKILL
    assert not base.cache.exists() or json.loads(base.cache.read_text())["schema_version"] == 1
    done = base.program.run("init-kb", "--json")
    assert done.code == 0, done.err
    assert len(base.sources) == 3
    assert [base.index.read_text().count(f"{name}\n") for name in base.sources] == [1, 1, 1]
    assert base.chat.calls <= (5 if point == "page.prepared" else 3)  # what was not written is made again
    assert_sound(base.place / "kb.db")


def test_E7_E27_two_updates_at_once_never_interleave(base: Base) -> None:
    both = [base.program.start("init-kb", "--json") for _ in range(2)]
    reports = [ended(each) for each in both]
    assert [each.code for each in reports] == [0, 0], [each.err for each in reports]
    assert sorted(each.report["summaries"] for each in reports) == [0, 3]
    assert sorted(each.report["written"] for each in reports) == [False, True]
    assert base.chat.calls == 3


def test_E7_an_update_that_fails_before_it_writes_leaves_the_old_files(base: Base) -> None:
    base.configure(index_cache_path="out/cache.json", index_path="out/index.txt")
    out = base.place / "out"
    assert base.program.run("init-kb").code == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    base.note("a.md", "# Anchors\n", at=LONG_AGO + 5)
    refused = base.program.run("init-kb", failpoints="kb.cache=raise")
    assert refused.code == 1
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    paid = base.chat.calls
    assert base.program.run("init-kb", "--json").report["written"] is True
    assert base.chat.calls == paid


class Watching:
    """A running `afresh watch --kb`."""

    def __init__(self, base: Base) -> None:
        self.process: subprocess.Popen[str] = base.program.start("watch", "--kb", "--json")
        self._lines: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append)),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, take: Callable[[str], object]) -> None:
        for line in stream:
            take(line)
        take("")

    def until(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next thing said that is meant."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"it ended: {self.errors}"
            said: dict[str, Any] = json.loads(line)
            if is_it(said):
                return said

    def report(self, source: str, **counts: int) -> dict[str, Any]:
        """The next report of a source with these counts."""
        return self.until(
            lambda said: said.get("source") == source and all(said[name] == n for name, n in counts.items())
        )

    def stop(self) -> int:
        """Ask it to end."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return self.process.returncode


@pytest.fixture
def watching(base: Base) -> Iterator[Watching]:
    base.configure(
        runtime_refresh_tick_seconds=0.1,
        file_watch_debounce_seconds=0.05,
        links_watch_debounce_seconds=0.05,
    )
    watching = Watching(base)
    yield watching
    if watching.process.poll() is None:
        watching.stop()


def test_E14_E27_E28_E29_E30_E31_while_it_runs_files_links_and_ticks_keep_both_files_fresh(
    base: Base, tiny: TinySite, watching: Watching
) -> None:
    watching.report("kb/files", new=2)
    assert len(base.sources) == 3
    for _ in range(2):  # in whatever order
        watching.until(lambda said: said.get("notice", "").endswith(" is watched"))
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


def test_E27_without_runtime_refresh_the_start_is_all_there_is(base: Base) -> None:
    base.configure(runtime_refresh_enabled=False)
    done = base.program.run("watch", "--kb")
    assert (done.code, len(base.sources)) == (0, 3)
