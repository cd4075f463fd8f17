"""Changes to files: what is heard, and what it means for a source."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from afresh.model.records import ListedUrl
from afresh.ports import ChangedPaths
from afresh.sources.folder.change_feed import POLLING, FileEvents
from afresh.sources.folder.filter import FileFilter, FolderRules
from afresh.urls.files import file_url
from afresh.urls.scope import Globs

TIMEOUT_SECONDS = 30  # seconds until what should be heard counts as lost


class Receiver:
    """Opens a lookout and waits for what it tells."""

    def __init__(self) -> None:
        self.reported: asyncio.Queue[tuple[str, set[str]]] = asyncio.Queue()
        self.loop = asyncio.get_running_loop()
        self.opened: list[FileEvents] = []

    def open(self, events: FileEvents) -> None:
        self.opened.append(events)
        events.open(lambda paths: self._put("heard", set(paths)), lambda why: self._put("lost", {why}))

    def _put(self, kind: str, what: set[str]) -> None:
        self.loop.call_soon_threadsafe(self.reported.put_nowait, (kind, what))

    async def until(self, kind: str, path: Path | None = None) -> set[str]:
        received: set[str] = set()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                reported, what = await self.reported.get()
                received |= what
                if reported == kind and (path is None or str(path) in what):
                    return received


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    yield made
    for events in made.opened:
        events.close()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "use.md").write_text("# Use")
    return folder


def at(folder: Path, **rules: object) -> FileEvents:
    return FileEvents(str(folder), FileFilter(str(folder), FolderRules(**rules)))  # type: ignore[arg-type]


async def test_files_are_reported_from_the_moment_it_is_open(receiver: Receiver, docs: Path) -> None:
    receiver.open(at(docs))
    (docs / "guide" / "new.md").write_text("# New")
    await receiver.until("heard", docs / "guide" / "new.md")
    (docs / "guide" / "new.md").rename(docs / "moved.md")
    received = await receiver.until("heard", docs / "moved.md")
    assert str(docs / "guide" / "new.md") in received
    (docs / "guide" / "use.md").unlink()
    await receiver.until("heard", docs / "guide" / "use.md")


async def test_a_file_that_is_replaced_is_reported_every_time(receiver: Receiver, tmp_path: Path) -> None:
    links, other = tmp_path / "links.txt", tmp_path / "other.txt"
    links.write_text("https://one.example/")
    events = FileEvents(str(links), None)
    receiver.open(events)
    for text in ("two", "three"):
        other.write_text(text)
        other.replace(links)
        assert events.classify(await receiver.until("heard", links)) == ChangedPaths(everything=True)
        assert events.is_intact()
    assert events.classify([str(other)]) == ChangedPaths(everything=False)


async def test_polling_reports_the_same(receiver: Receiver, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POLLING, "1")
    monkeypatch.setenv("WATCHFILES_POLL_DELAY_MS", "50")
    receiver.open(at(docs))
    (docs / "new.md").write_text("# New")
    await receiver.until("heard", docs / "new.md")


async def test_a_name_that_is_no_text_is_reported_as_a_loss(receiver: Receiver, docs: Path) -> None:
    """watchfiles cannot pass such a name on: whoever listens lists everything and opens anew."""
    receiver.open(at(docs))
    Path(os.fsdecode(os.fsencode(docs) + b"/\xff\xfe.md")).write_text("# Odd")
    assert "decode" in " ".join(await receiver.until("lost"))


def test_what_cannot_be_watched_is_an_error(docs: Path) -> None:
    with pytest.raises(FileNotFoundError):
        at(docs / "nowhere").open(lambda paths: None, lambda why: None)


async def test_F80_a_root_that_is_gone_or_replaced_does_not_stand(receiver: Receiver, docs: Path) -> None:
    events = at(docs)
    receiver.open(events)
    assert events.is_intact()
    docs.rename(docs.with_name("away"))
    assert not events.is_intact()
    docs.mkdir()
    assert not events.is_intact(), "another folder of the same name is not the one that is heard"
    docs.rmdir()
    docs.with_name("away").rename(docs)
    assert events.is_intact()


def test_files_of_the_source_are_reported_with_their_depth_and_others_by_url(docs: Path) -> None:
    gone, png = docs / "guide" / "gone.md", docs / "a.png"
    png.write_bytes(b"x")
    changed = at(docs).classify([str(docs / "guide" / "use.md"), str(gone), str(png)])
    assert changed == ChangedPaths(
        [ListedUrl(file_url(str(docs / "guide" / "use.md")), 1)], [file_url(str(png)), file_url(str(gone))]
    )


@pytest.mark.parametrize("name", [".hidden.md", ".git/index", ".git/refs/heads/x", "build/out.md", "x.log"])
def test_hidden_and_ignored_paths_mean_nothing(docs: Path, name: str) -> None:
    (docs / ".gitignore").write_text("build/\n*.log\n")
    for exists in (False, True):
        if exists:
            (docs / name).parent.mkdir(parents=True, exist_ok=True)
            (docs / name).write_text("x")
        assert at(docs).classify([str(docs / name)]) == ChangedPaths([], [])


@pytest.mark.parametrize("name", ["use.md~", "#use.md#", "use.md.swp", "save.tmp", "use.md.SWP"])
def test_what_editors_leave_for_a_moment_is_no_file_of_the_source(docs: Path, name: str) -> None:
    (docs / name).write_text("x")
    assert at(docs).classify([str(docs / name)]) == ChangedPaths([], [file_url(str(docs / name))])
    (docs / "use.md").write_text("x")
    assert len(at(docs).classify([str(docs / "use.md")]).files) == 1


def test_a_new_folder_and_an_ignore_file_mean_everything(docs: Path) -> None:
    (docs / "new").mkdir()
    assert at(docs).classify([str(docs / "new")]).everything
    assert at(docs).classify([str(docs / "guide" / ".gitignore")]).everything
    assert not at(docs, gitignore=False).classify([str(docs / "guide" / ".gitignore")]).everything
    (docs / ".gitignore").write_text("new/\n")
    assert at(docs).classify([str(docs / "new")]) == at(docs).classify([str(docs / "new" / ".gitignore")])
    assert not at(docs).classify([str(docs / "new")]).everything


def test_a_folder_that_is_gone_is_reported_although_only_some_names_are_wanted(docs: Path) -> None:
    events = FileEvents(str(docs), FileFilter(str(docs), FolderRules(), Globs(("*.md",), ())))
    assert events.classify([str(docs / "away")]).other_urls == [file_url(str(docs / "away"))]


def test_a_link_in_the_place_of_a_file_is_not_followed(docs: Path) -> None:
    (docs / "link.md").symlink_to(docs / "guide" / "use.md")
    assert at(docs).classify([str(docs / "link.md")]) == ChangedPaths([], [file_url(str(docs / "link.md"))])
    assert len(at(docs, symlinks=True).classify([str(docs / "link.md")]).files) == 1


def test_a_file_in_the_place_of_a_folder_is_no_error(docs: Path) -> None:
    (docs / "guide" / "use.md").unlink()
    (docs / "guide").rmdir()
    (docs / "guide").write_text("a file now")
    old, new = str(docs / "guide" / "use.md"), str(docs / "guide")
    assert at(docs).classify([old, new]) == ChangedPaths([ListedUrl(file_url(new), 0)], [file_url(old)])
