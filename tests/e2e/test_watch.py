"""`afresh watch` as people run it: a process that keeps a folder fresh while files change under it."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.library import assert_sound, found, index_of, opened, rows
from tests.e2e.program import TIMEOUT, Program
from tests.e2e.sites import lay, looks

from afresh.testing import TinySite
from afresh.urls.files import file_url

DEBOUNCE = "0.1s"
WRITTEN = 1_750_000_000.5  # long ago: what was written just now is read once more
DISPLAYED = ("mode", "checked", "changed", "new", "deleted", "unchanged", "not_modified", "held", "failed")
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


class Watching:
    """A running `afresh watch`, and what it has said so far."""

    def __init__(self, program: Program, *words: str, failpoints: str = "") -> None:
        self.process: subprocess.Popen[str] = program.start(
            "watch", "--json", "--debounce", DEBOUNCE, *words, failpoints=failpoints
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append)),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, take: Any) -> None:
        for line in stream:
            take(line)
        take("")

    def message(self) -> Any:
        """The next thing it says."""
        line = self._lines.get(timeout=TIMEOUT)
        assert line, f"it ended: {self.errors}"
        return json.loads(line)

    def notice(self, words: str) -> None:
        """Wait until it tells something; no batch may come before."""
        message = self.message()
        assert words in message.get("notice", ""), message

    def batch(self) -> dict[str, Any]:
        """What the next batch did: counts that are not nought, and how it came about."""
        message = self.message()
        names = ("mode", "checked", "changed", "new", "deleted", "unchanged", "not_modified", "held", "failed")
        return {name: message[name] for name in names if message[name]}

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Stop it; the exit code."""
        self.process.send_signal(number)
        return self.over()

    def over(self) -> int:
        """Wait for its end; the exit code."""
        try:
            code = self.process.wait(TIMEOUT)
        finally:
            self.process.kill()
        for reader in self._readers:
            reader.join(TIMEOUT)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of twelve notes, of which some may be deleted before the brake holds."""
    folder = tmp_path / "docs"
    for number in range(12):
        file = folder / f"part-{number % 3}" / f"note-{number}.md"
        write(file, f"note {number} of the granite book")
        os.utime(file, (WRITTEN, WRITTEN))
    return folder


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {file.stem}\n\n{text}\n")


@pytest.fixture
async def program(store: Path, docs: Path, work: object) -> Program:
    """The command line on a store that knows the folder."""
    await crawl(store, docs)
    return Program(store, in_process=True)


async def crawl(store: Path, docs: Path) -> None:
    async with opened(store) as kb:
        assert (await kb.runs.crawl(str(docs), name="docs")).state == "completed"


@pytest.fixture
def watching(program: Program) -> Iterator[Watching]:
    made = Watching(program)
    try:
        made.notice("Watching docs")
        yield made
    finally:
        made.process.kill()
        made.over()


def modes(store: Path) -> list[str]:
    return [mode for (mode,) in rows(store, "select mode from runs order by id")]


async def assert_fresh(store: Path, docs: Path) -> None:
    """What is in the index is what a crawl of the folder into a new store finds."""
    other = store.with_name("fresh.db")
    await crawl(other, docs)
    assert index_of(store) == index_of(other)
    for file in other.parent.glob("fresh.db*"):
        file.unlink()


async def test_A18_F84_what_happens_to_files_is_found_at_once_and_nothing_else_is_looked_at(
    watching: Watching, docs: Path, store: Path
) -> None:
    first, moved = docs / "part-1" / "note-1.md", docs / "part-0" / "moved.md"
    write(first, "an edited note about zebras")
    assert watching.batch() == {"mode": "check", "checked": 1, "changed": 1}
    write(docs / "part-2" / "new.md", "a new note about giraffes")
    assert watching.batch() == {"mode": "check", "checked": 1, "new": 1}
    async with opened(store) as kb:
        assert await found(kb, "zebras") == {file_url(str(first))}
        assert await found(kb, "giraffes") == {file_url(str(docs / "part-2" / "new.md"))}
    write(docs / ".saving", "an atomic note about tigers")
    (docs / ".saving").replace(first)
    assert watching.batch() == {"mode": "check", "checked": 1, "changed": 1}
    (docs / "part-0" / "note-0.md").unlink()
    assert watching.batch() == {"mode": "check", "checked": 1, "deleted": 1}
    before = rows(store, "select id from vectors order by id")
    first.rename(moved)
    assert watching.batch() == {"mode": "check", "checked": 2, "new": 1, "deleted": 1}
    assert rows(store, "select id from vectors order by id") == before, "vectors are used again"
    async with opened(store) as kb:
        assert await found(kb, "zebras") == set()
        assert await found(kb, "tigers") == {file_url(str(moved))}
    await assert_fresh(store, docs)
    assert watching.end() == 0
    assert_sound(store)


async def test_F80_folders_that_come_and_go_are_followed_and_the_root_is_waited_for(
    watching: Watching, docs: Path, store: Path
) -> None:
    write(docs / "part-3" / "deep" / "note.md", "deep down are elephants")
    assert watching.batch() == {"mode": "refresh", "checked": 13, "new": 1, "not_modified": 12}
    (docs / "part-3").rename(docs.parent / "away")
    assert watching.batch() == {"mode": "check", "checked": 1, "deleted": 1}
    (docs / ".gitignore").write_text("note-2.md\n")
    assert watching.batch()["deleted"] == 1
    (docs / ".gitignore").unlink()
    assert watching.batch()["new"] == 1
    held = index_of(store)
    docs.rename(docs.with_name("elsewhere"))
    watching.notice("does not exist; its pages are kept")
    assert index_of(store) == held
    write(docs.with_name("elsewhere") / "part-1" / "note-1.md", "written while away")
    docs.with_name("elsewhere").rename(docs)
    watching.notice("Watching docs again")
    assert watching.batch() == {"mode": "refresh", "checked": 12, "changed": 1, "not_modified": 11}
    await assert_fresh(store, docs)
    for number in range(11):
        write(docs.parent / "book" / f"page-{number}.md", f"page {number} of a book")
    (docs.parent / "book").rename(docs / "book")
    assert watching.batch()["new"] == 11
    (docs / "book").rename(docs.parent / "book")
    message = watching.message()
    assert (message["mode"], message["state"], message["held"]) == ("check", "needs_confirmation", 11), "the brake"


async def test_F85_ten_thousand_touches_end_in_an_index_like_a_new_one(
    watching: Watching, docs: Path, store: Path
) -> None:
    files = sorted(docs.rglob("*.md"))
    for number in range(10_000):
        file = files[number % len(files)]
        if number % 3 and number < 10_000 - len(files):
            os.utime(file)
        else:
            write(file, f"touched as number {number:05}")
    while sum("number 099" in (held.markdown or "") for held in index_of(store).values()) < len(files):
        watching.message()
    await assert_fresh(store, docs)
    assert len(modes(store)) < 50, "ten thousand events are a few batches"
    assert watching.end() == 0
    assert_sound(store)


@pytest.mark.skipif(not QUEUE.exists(), reason="only Linux tells how many events it keeps")
async def test_F85_after_an_overflow_everything_is_listed(watching: Watching, docs: Path, store: Path) -> None:
    """The system keeps so many events for one who does not listen; what it drops is found all the same."""
    watching.process.send_signal(signal.SIGSTOP)
    pictures = [docs / f"picture-{number}.png" for number in range(1_200)]
    for _ in range(int(QUEUE.read_text()) // len(pictures) + 1):
        for picture in pictures:  # each touch is an event at least, and no two in a row are alike
            picture.touch()
    write(docs / "part-1" / "late.md", "nobody hears of the okapi")
    watching.process.send_signal(signal.SIGCONT)
    assert watching.batch() == {"mode": "refresh", "checked": 13, "new": 1, "not_modified": 12}
    await assert_fresh(store, docs)


@pytest.mark.parametrize("point", ["commit.chunks", "finish.closed=kill@2"])
async def test_F85_a_kill_during_a_batch_leaves_a_store_that_the_next_watch_makes_whole(
    program: Program, docs: Path, store: Path, point: str
) -> None:
    doomed = Watching(program, failpoints=point if "=" in point else f"{point}=kill")
    try:
        doomed.notice("Watching docs")
        for number in (1, 2):
            write(docs / f"part-{number}" / f"note-{number}.md", f"killed while this was read {number}")
        (docs / "part-0" / "note-0.md").rename(docs / "part-1" / "other.md")
    finally:
        assert doomed.over() == -signal.SIGKILL
    again = Watching(program)
    try:
        while (message := again.message()).get("notice") != "Watching docs":
            assert message.get("state") == "completed"
        await assert_fresh(store, docs)
    finally:
        assert again.end() == 0
    assert_sound(store)


async def test_E29_a_list_of_links_is_read_when_it_is_saved_and_only_what_is_new_is_asked_for(
    tmp_path: Path, store: Path, work: object, tiny: TinySite
) -> None:
    links = tmp_path / "links.txt"
    lay(tiny, {"/a": [], "/b": [], "/c": []})
    a, b, c = (f"{tiny.url.rstrip('/')}{path}" for path in ("/a", "/b", "/c"))
    links.write_text(f"{a}\n{b}\n")
    async with opened(store) as kb:
        assert (await kb.runs.crawl(str(links), name="links")).new == 2
    tiny.requests.clear()
    watching = Watching(Program(store, in_process=True))
    try:
        watching.notice("Watching links")
        (tmp_path / "other.txt").write_text(f"{b}\n{c}\n")
        (tmp_path / "other.txt").replace(links)
        message = watching.message()
        assert (message["mode"], message["new"], message["deleted"]) == ("due", 1, 1)
        links.unlink()
        assert "does not exist: all stored pages are kept" in watching.message()["error"]
        links.write_text(f"{b}\n{a}\n{c}\n")
        assert watching.message()["new"] == 1
    finally:
        assert watching.end() == 0
    assert looks(tiny)["/a"] == looks(tiny)["/c"] == 1
    assert "/b" not in looks(tiny)
    assert set(index_of(store, "links")) == {a, b, c}


async def test_a_store_and_a_log_inside_the_folder_wake_nothing(docs: Path, work: object) -> None:
    program = Program(docs / "[kb] 1.db", in_process=True)
    log = docs / "afresh.log"
    settings = program.file.read_text() + f'log: {{file: "{log}", level: debug}}\n'
    program.file.unlink()
    program.file = docs.parent / "inside.yaml"
    program.file.write_text(settings)
    await crawl(program.store, docs)
    watching = Watching(program)
    try:
        watching.notice("Watching docs")
        for text in ("once", "twice", "thrice"):
            write(docs / "part-1" / "note-1.md", text)
            assert watching.batch() == {"mode": "check", "checked": 1, "changed": 1}
    finally:
        assert watching.end() == 0
    assert log.stat().st_size
    assert modes(program.store) == ["crawl", "refresh", "check", "check", "check"]
    assert rows(program.store, "select url from pages where url not like '%/note-%'") == []


def test_without_json_each_batch_is_one_line_and_a_signal_ends_it_well(program: Program, docs: Path) -> None:
    process = program.start("watch", "docs", "--debounce", DEBOUNCE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stderr.readline() == "Watching docs\n"
    write(docs / "part-1" / "note-1.md", "an edited note")
    assert re.fullmatch(r"docs: 1 changed in [0-9.]+ s\n", process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (0, "", "stopping …\n")
    assert_sound(program.store)
