"""The knowledge base when its process is killed, when two write at once, and when the disk is full."""

import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.kb_files import LONG_AGO, Base, page
from tests.e2e.library import assert_sound
from tests.e2e.program import ended
from tests.fakes.chat_server import ChatServer

from afresh.files import write_whole
from afresh.testing import TinySite


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str], tiny: TinySite) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(tmp_path, capsys, chat)
        base.note("a.md", "# Apples\n")
        base.note("b.md", "# Boats\n")
        tiny.put("/x", page("xylophones"))
        base.list(tiny.at("/x"))
        yield base


UPDATING = ["kb.cache", "kb.index", "kb.written"]


@pytest.mark.parametrize("point", ["page.prepared", "commit.done", "finish.done@2", *UPDATING])
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
    under_way = 2 if point in ("page.prepared", "commit.done") else 0  # summaries that were not written yet
    assert base.chat.calls <= 3 + under_way
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


@pytest.mark.parametrize("away", [False, True])
def test_E1_G7_an_update_that_fails_after_it_took_over_the_cache_is_not_paid_for_again(
    base: Base, tiny: TinySite, work: type[InProcess], away: bool
) -> None:
    base.run()
    if away:
        base.cache.unlink()
    else:
        base.edit(lambda sources: sources["a.md"].update(summary_text="By hand."))
    base.note("c.md", "# Cranes\n")
    base.links.unlink()
    base.run(code=1)
    with base.unpaid():
        base.run(code=1)
    base.list(tiny.at("/x"))
    base.run()
    assert sorted(base.sources) == sorted(["a.md", "b.md", "c.md", tiny.at("/x")])
    assert base.run()["written"] is False


@pytest.mark.parametrize("starved", ["index-cache.json", "index.txt"])
def test_F13_E7_on_a_full_disk_the_old_files_stay_and_nothing_is_paid_for_twice(
    base: Base, work: type[InProcess], monkeypatch: pytest.MonkeyPatch, starved: str
) -> None:
    base.run()
    before = {file: file.read_bytes() for file in (base.cache, base.index)}

    def without_room(path: Path, data: bytes) -> bool:
        """Write while no file may grow, if it is the one meant."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 if path.name == starved else limits[0], limits[1]))
        try:
            return write_whole(path, data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    base.note("a.md", "# Anchors\n", at=LONG_AGO + 5)
    with monkeypatch.context() as patch:
        patch.setattr("afresh.digest.files.write_whole", without_room)
        error = base.run(code=1)["error"]
    assert starved in error
    assert "The file is unchanged" in error
    assert (base.place / starved).read_bytes() == before[base.place / starved]
    assert not list(base.place.glob("*.tmp"))
    with base.unpaid():
        assert base.run()["written"] is True
    assert "Anchors" in base.index.read_text()
    assert base.sources["a.md"]["summary_text"] in base.index.read_text()
