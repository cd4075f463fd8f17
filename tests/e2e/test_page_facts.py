"""What is told of a page: type, validators, times and the next look, for files as for web pages."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.e2e.library import EVERY_STORE, opened
from tests.e2e.sites import lay, star

from afresh.cli import main
from afresh.kb import KnowledgeBase
from afresh.model.reports import PageView
from afresh.testing import FrozenClock, TinySite

pytestmark = pytest.mark.usefixtures("work")
NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)


def _notes(folder: Path) -> Path:
    notes = folder / "notes"
    notes.mkdir()
    for name, text in {"a.md": "# A\n\nOne.", "b.txt": "Two.", "c.html": "<p>Three", "d.py": "x = 4"}.items():
        (notes / name).write_text(text)
        os.utime(notes / name, (NOON.timestamp(), NOON.timestamp()))
    return notes


async def _pages(kb: KnowledgeBase, name: str) -> dict[str, PageView]:
    return {view.url.rpartition("/")[2]: view for view in await kb.pages.of_source(name)}


@EVERY_STORE
async def test_R3_A8_a_file_has_type_validators_and_times_as_a_page_has(store: Path, tmp_path: Path) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        notes = _notes(tmp_path)
        await kb.runs.crawl(str(notes), name="notes")
        first = clock()
        pages = await _pages(kb, "notes")
        kinds = {name: view.content_type for name, view in pages.items()}
        assert kinds == {"a.md": "text/markdown", "b.txt": "text/plain", "c.html": "text/html", "d.py": "text/plain"}
        view = pages["a.md"]
        assert (view.size, view.mtime) == (9, NOON)
        assert view.last_modified == "Tue, 03 Feb 2026 12:00:00 GMT"
        assert (view.created_at, view.updated_at, view.last_scraped, view.last_seen) == (first,) * 4
        later = clock.advance(days=1)
        await kb.runs.refresh(["notes"])
        view = (await _pages(kb, "notes"))["a.md"]
        assert (view.created_at, view.updated_at, view.last_scraped) == (first,) * 3, "content untouched"
        assert (view.last_seen, view.checked_at) == (later, later)
        (notes / "a.md").write_text("# A\n\nAnother.")
        await kb.runs.refresh(["notes"])
        view = (await _pages(kb, "notes"))["a.md"]
        assert (view.created_at, view.updated_at, view.last_scraped) == (first, later, later)


async def test_R3_members_of_an_archive_have_a_type(kb: KnowledgeBase, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("docs/a.md", "# A\n\nOne.")
    await kb.runs.crawl(str(tmp_path / "docs.zip"), name="docs")
    view = (await _pages(kb, "docs"))["a.md"]
    assert (view.content_type, view.created_at is not None) == ("text/markdown", True)
    assert view.etag


@EVERY_STORE
async def test_R11_the_next_look_that_was_set_is_displayed(store: Path, tiny: TinySite) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        lay(tiny, star(2))
        await kb.runs.crawl(tiny.url, name="docs")
        page = (await _pages(kb, "docs"))["p0"]
        assert page.next_look == clock() + timedelta(days=1)
        soon = clock() + timedelta(hours=2)
        assert (await kb.pages.check_at(page.id, soon)).next_look == soon
        assert (await kb.pages.get(page.id)).next_look == soon
        assert (await _pages(kb, "docs"))["p0"].next_look == soon
        source = (await kb.sources.all())[0]
        listed = {each.id: each for each in await kb.pages.records([source.id], limit=9)}
        assert listed[page.id].next_look == soon
        assert (await kb.pages.explain(page.url)).next_look == soon


def test_R3_R11_the_command_line_says_times_and_the_next_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", f"sqlite:///{tmp_path / 'kb.db'}"]

    async def crawled() -> None:
        async with opened(tmp_path / "kb.db") as kb:
            await kb.runs.crawl(str(_notes(tmp_path)), name="notes")

    asyncio.run(crawled())
    capsys.readouterr()
    assert main(["pages", "notes", "--json", *store]) == 0
    found = json.loads(capsys.readouterr().out)
    names = {"created_at", "updated_at", "last_scraped", "last_seen", "size", "mtime", "next_look"}
    assert all(names <= each.keys() for each in found)
    assert all(each["created_at"] and each["mtime"] == "2026-02-03T12:00:00Z" for each in found)
    assert main(["why", found[0]["url"], *store]) == 0
    displayed = capsys.readouterr().out
    for word in ("content type", "first found", "last downloaded", "last found", "next check", "Tue, 03 Feb 2026"):
        assert word in displayed
