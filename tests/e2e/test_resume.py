"""R0: what changed between a kill and the run that goes on is in the index, or the run is a new one."""

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.kb_files import LONG_AGO, Base
from tests.e2e.kb_files import page as kb_page
from tests.e2e.library import EVERY_STORE, assert_sound, index_of, opened, rows
from tests.e2e.mortal import live
from tests.e2e.sites import lay, looks, page, star
from tests.fakes.chat_server import ChatServer

from afresh.events import Event, Notice
from afresh.model.reports import RunReport
from afresh.testing import TinySite

KILLED = -9
FILES = 12
KILLED_LATE = ["run.filled", "page.prepared=kill@6", "commit.done", "finish.begin", "finish.closed"]
NEXT_DAY = timedelta(hours=20)


def _point(point: str) -> str:
    return point if "=" in point else f"{point}=kill"


def _write(file: Path, text: str, at: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {file.stem}\n\n{text}\n")
    os.utime(file, (LONG_AGO + at, LONG_AGO + at))


def _sentence(chance: random.Random) -> str:
    return " ".join("".join(chance.choices("abcdefghij", k=8)) for _ in range(20))


def _later(lapse: timedelta) -> datetime:
    return datetime.now(UTC) + lapse


async def _goes_on(store: Path, lapse: timedelta, reported: list[Event] | None = None) -> RunReport:
    """The refresh that finds the run of a dead process so much later."""
    async with opened(store, clock=lambda: _later(lapse)) as kb:
        (report,) = await kb.runs.refresh(["docs"], listener=(reported if reported is not None else []).append)
    return report


async def _rebuilt(target: str, folder: Path) -> dict[str, object]:
    fresh = folder / f"fresh-{random.getrandbits(40)}.db"
    async with opened(fresh) as kb:
        await kb.runs.crawl(target, name="docs")
    return dict(index_of(fresh))


@pytest.mark.parametrize("point", KILLED_LATE)
@pytest.mark.parametrize("lapse", [timedelta(0), NEXT_DAY])
async def test_R0_P6_F132_files_that_changed_after_a_kill_are_read_by_the_run_that_goes_on(
    tmp_path: Path, work: type[InProcess], point: str, lapse: timedelta
) -> None:
    root, store = tmp_path / "docs", tmp_path / "kb.db"
    for number in range(FILES):
        _write(root / f"f{number}.md", f"first text of {number}", number)
    assert live(store, str(root), "crawl", _point(point)) == KILLED
    for number in range(FILES - 1):
        _write(root / f"f{number}.md", f"second text of {number}", 100 + number)
    (root / f"f{FILES - 1}.md").unlink()
    _write(root / "later.md", "a new file", 200)
    report = await _goes_on(store, lapse)
    assert (report.state, report.run) == ("completed", 1)
    assert index_of(store) == await _rebuilt(str(root), tmp_path)
    assert_sound(store)


async def test_R0_a_full_run_of_files_that_goes_on_reads_only_what_changed_since(
    tmp_path: Path, work: type[InProcess]
) -> None:
    root, store = tmp_path / "docs", tmp_path / "kb.db"
    for number in range(FILES):
        _write(root / f"f{number}.md", f"first text of {number}", number)
    assert live(store, str(root), "crawl") == 0
    assert live(store, "docs", "full", "finish.begin=kill") == KILLED
    _write(root / "f0.md", "second text", 100)
    work.calls = 0
    report = await _goes_on(store, timedelta(0))
    assert (report.run, report.state, report.changed) == (2, "completed", 1)
    assert work.calls <= 3  # one file is read and cut
    assert index_of(store) == await _rebuilt(str(root), tmp_path)


@EVERY_STORE
@pytest.mark.parametrize("etags", [True, False])
async def test_R0_P6_F132_pages_that_changed_before_a_run_goes_on_minutes_later_are_read_again(
    store: Path, tmp_path: Path, work: type[InProcess], etags: bool
) -> None:
    with TinySite(etags=etags) as site:
        lay(site, star(FILES))
        assert live(store, site.url, "crawl", "finish.begin=kill") == KILLED
        for number in range(FILES - 1):
            site.put(f"/p{number}", page(f"/p{number}", ["/"], f"other words: {_sentence(random.Random(number))}"))
        site.delete(f"/p{FILES - 1}")
        site.requests.clear()
        reported: list[Event] = []
        report = await _goes_on(store, timedelta(minutes=10), reported)
        assert (report.state, report.checked) == ("completed", FILES + 1)
        assert rows(store, "select count(*) from runs") == [(1,)]
        assert (report.new, report.changed, report.deleted) == (FILES + 1, FILES - 1, 1)
        assert max(looks(site).values()) == 1
        notice = next(each.text for each in reported if isinstance(each, Notice))
        assert f"run {report.run} was interrupted" in notice
        assert "every page is checked again" in notice
        assert index_of(store) == await _rebuilt(site.url, tmp_path)
    assert_sound(store)


@EVERY_STORE
async def test_R0_what_a_run_saw_before_it_was_interrupted_proves_no_deletion(
    store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    with TinySite() as site:
        lay(site, star(30))
        assert live(store, site.url, "crawl") == 0
        for number in range(3):
            site.delete(f"/p{number}")
        assert live(store, site.url, "refresh", "finish.begin=kill") == KILLED
        for number in range(3):
            site.restore(f"/p{number}")
        report = await _goes_on(store, timedelta(minutes=10))
        assert (report.state, report.deleted, report.checked) == ("completed", 0, 31)
        assert index_of(store) == await _rebuilt(site.url, tmp_path)


@EVERY_STORE
async def test_R0_max_pages_holds_for_a_run_that_looks_at_everything_again(
    store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    limits = {"crawl.max_pages": 8}
    with TinySite() as site:
        lay(site, star(20))
        assert live(store, site.url, "crawl", "finish.begin=kill", limits) == KILLED
        async with opened(store, limits, clock=lambda: _later(timedelta(minutes=10))) as kb:
            (report,) = await kb.runs.refresh(["docs"])
    assert (report.checked, report.queued, len(index_of(store))) == (8, 8, 8)


async def test_R0_a_run_that_goes_on_at_once_asks_for_no_page_twice(store: Path, work: type[InProcess]) -> None:
    with TinySite() as site:
        lay(site, star(FILES))
        assert live(store, site.url, "crawl", "finish.begin=kill") == KILLED
        site.requests.clear()
        reported: list[Event] = []
        report = await _goes_on(store, timedelta(0), reported)
        assert (report.state, report.run, report.new) == ("completed", 1, FILES + 1)
        assert (report.checked, report.not_modified) == (FILES + 1, 0)  # the start page counts once
        assert set(looks(site)) == {"/"}  # is the site well?
        assert any(isinstance(each, Notice) and "continuing run 1" in each.text for each in reported)


def test_R0_P6_F132_notes_that_changed_after_a_kill_are_in_the_knowledge_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tiny: TinySite
) -> None:
    with ChatServer() as chat:
        base = Base(tmp_path, capsys, chat)
        for number in range(6):
            base.note(f"n{number}.md", f"# First {number}\n")
        tiny.put("/x", kb_page("xylophones"))
        base.list(tiny.at("/x"))
        assert base.program.run("init-kb", failpoints="finish.begin=kill").code == KILLED
        for number in range(6):
            base.note(f"n{number}.md", f"# Second {number}\n", at=LONG_AGO + 60)
        done = base.program.run("init-kb", "--json")
        assert done.code == 0, done.err
        texts = rows(tmp_path / "kb.db", "select d.markdown from documents d join pages p on p.id = d.page_id")
        assert sum("Second" in text for (text,) in texts) == 6
        assert not any("First" in text for (text,) in texts)


POINTS = ["page.claimed", "page.fetched", "page.prepared", "commit.done", "finish.begin"]


@pytest.mark.parametrize("seed", range(3))
async def test_R0_P6_F132_kills_edits_and_runs_that_go_on_end_as_a_rebuild_of_files(
    tmp_path: Path, work: type[InProcess], seed: int
) -> None:
    chance, root, store = random.Random(seed), tmp_path / "docs", tmp_path / "kb.db"
    clock = 0

    def edit() -> None:
        nonlocal clock
        for _ in range(chance.randint(1, 5)):
            clock += 1
            file = root / f"f{chance.randrange(FILES)}.md"
            if file.exists() and chance.random() < 0.2:
                file.unlink()
            else:
                _write(file, f"text {clock}", clock)

    for number in range(FILES):
        _write(root / f"f{number}.md", f"text of {number}", 0)
    for _ in range(5):
        point = f"{chance.choice(POINTS)}=kill@{chance.randint(1, 4)}"
        live(store, str(root), "crawl", point)
        edit()
    assert live(store, str(root), "full", "finish.begin=kill") == KILLED  # all of it is looked at
    edit()
    report = await _goes_on(store, chance.choice([timedelta(0), NEXT_DAY]))
    if report.state == "needs_confirmation":
        async with opened(store) as kb:
            report = await kb.runs.confirm(report.run)
    assert report.state == "completed"
    assert index_of(store) == await _rebuilt(str(root), tmp_path)


@pytest.mark.parametrize("seed", range(3))
async def test_R0_P6_F132_kills_edits_and_runs_that_go_on_end_as_a_rebuild_of_a_site(
    tmp_path: Path, work: type[InProcess], seed: int
) -> None:
    chance, store, minutes = random.Random(seed), tmp_path / "kb.db", 0
    with TinySite(etags=bool(seed % 2)) as site:
        lay(site, star(FILES))
        for _ in range(4):
            point = f"{chance.choice(POINTS)}=kill@{chance.randint(1, 4)}"
            live(store, site.url, "crawl", point, at=minutes)
            minutes += chance.randint(4, 90)
            for _ in range(chance.randint(1, 5)):
                path = f"/p{chance.randrange(FILES)}"
                site.restore(path)
                site.put(path, page(path, ["/"], _sentence(chance)))
                if chance.random() < 0.2:
                    site.delete(path)
        report = await _goes_on(store, timedelta(minutes=minutes))
        assert report.state == "completed", (report.error, report.notes)
        assert index_of(store) == await _rebuilt(site.url, tmp_path)
    assert_sound(store)


async def test_R0_B7_F26_a_run_whose_process_is_gone_is_queued_again_at_once(
    store: Path, work: type[InProcess]
) -> None:
    """Who leaves a run to workers meets no run of a dead process that is `under way`."""
    with TinySite() as site:
        lay(site, star(FILES))
        assert live(store, site.url, "crawl", "commit.done=kill") == KILLED
        async with opened(store) as kb:
            (queued,) = await kb.runs.refresh(["docs"], queue=True)
            assert (queued.run, queued.state) == (1, "queued")
            assert rows(store, "select name from workers") == []
            await kb.runs.work(once=True)
            (done,) = await kb.runs.records(await kb.sources.ids("docs"))
    assert (done.run, done.state, done.new) == (1, "completed", FILES + 1)


@EVERY_STORE
async def test_U4_F135_a_lower_limit_holds_for_the_crawl_that_goes_on(store: Path, work: type[InProcess]) -> None:
    with TinySite() as site:
        lay(site, star(40))
        assert live(store, site.url, "crawl", "commit.done=kill") == KILLED
        async with opened(store) as kb:
            report = await kb.runs.crawl(site.url, name="docs", rules={"max_pages": 5})
            assert (report.state, report.checked) == ("completed", 5)  # the root counts once
            assert rows(store, "select count(*) from runs") == [(1,)]
            assert any("max_pages 5" in note for note in report.notes)
            (again,) = await kb.runs.refresh(["docs"])
            assert again.checked == 5
            more = await kb.runs.crawl(site.url, name="docs", rules={"max_pages": 100})
            assert more.checked == 41
    assert_sound(store)
    assert len(index_of(store)) == 41


@EVERY_STORE
@pytest.mark.parametrize("point", ["run.filled=kill", "page.claimed=kill", "commit.done=kill"])
async def test_F185_a_crawl_that_goes_on_reads_as_many_pages_as_its_limit_allows(
    store: Path, work: type[InProcess], point: str
) -> None:
    with TinySite() as site:
        lay(site, {"/": ["/p0"], **{f"/p{at}": [f"/p{at + 1}"] for at in range(9)}, "/p9": ["/"]})
        assert live(store, site.url, "crawl", point) == KILLED
        async with opened(store) as kb:
            report = await kb.runs.crawl(site.url, name="docs", rules={"max_pages": 5})
            assert (report.state, rows(store, "select count(*) from runs")) == ("completed", [(1,)])
    assert_sound(store)
    assert len(index_of(store)) == 5


async def test_U4_U5_durations_and_the_end_of_a_run_that_was_taken_over(store: Path, work: type[InProcess]) -> None:
    """The time of the worker that died counts, the time in between does not."""
    with TinySite() as site:
        lay(site, star(FILES))
        assert live(store, site.url, "crawl", "finish.begin=kill") == KILLED
        async with opened(store, clock=lambda: _later(timedelta(minutes=2))) as kb:
            (dead,) = await kb.runs.records(await kb.sources.ids("docs"))
            assert 0 < dead.seconds < 60
            (done,) = await kb.runs.refresh(["docs"])
            assert dead.seconds - 0.01 <= done.seconds < 60
            (view,) = await kb.sources.views()
            assert view.last_end is not None
            assert view.crawl_time is not None
            assert view.last_end - view.crawl_time > timedelta(minutes=1)
