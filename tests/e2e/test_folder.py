"""A folder through `kb`: edits, moves, deletions, a vanished root, and real docs in four versions."""

import json
import os
import re
import shutil
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, counts, found, index_of, opened, rows, settings
from tests.server.asking import ask

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.testing import FrozenClock
from afresh.urls.files import file_url

OLD = 1_700_000_000


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A small folder of notes."""
    folder = tmp_path / "docs"
    for name, text in {
        "index.md": "# Start\n\nWelcome to the granite notes.",
        "guide/install.md": "# Install\n\nRun the basalt installer.",
        "guide/use.md": "# Use\n\nAsk the marble oracle.",
    }.items():
        write(folder / name, text)
    return folder


def write(file: Path, text: str, at: int = OLD) -> None:
    """Write a file with a time that lies back, as most files' does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (at, at))


async def refreshed(kb: KnowledgeBase) -> dict[str, int]:
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "completed", report.error
    return counts(report)


@EVERY_STORE
async def test_A18_edits_new_files_and_deletions_are_followed(
    kb: KnowledgeBase, docs: Path, work: type[InProcess], store: Path
) -> None:
    report = await kb.runs.crawl(str(docs), name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 3})
    assert await found(kb, "basalt") == {file_url(str(docs / "guide/install.md"))}
    done = work.calls
    assert await refreshed(kb) == {"not_modified": 3}
    assert work.calls == done  # nothing was read, cut or compared
    write(docs / "guide/install.md", "# Install\n\nRun the gabbro installer.", OLD + 1)
    write(docs / "guide/new.md", "# New\n\nSomething about pumice.")
    (docs / "guide/use.md").unlink()
    assert await refreshed(kb) == {"new": 1, "changed": 1, "not_modified": 1, "deleted": 1}
    assert await found(kb, "basalt") == await found(kb, "marble") == set()
    assert len(await found(kb, "gabbro")) == len(await found(kb, "pumice")) == 1
    assert_sound(store)


async def test_A18_touching_a_file_reads_it_and_changes_nothing(kb: KnowledgeBase, docs: Path) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    os.utime(docs / "index.md", (OLD + 5, OLD + 5))
    assert await refreshed(kb) == {"unchanged": 1, "not_modified": 2}
    assert await refreshed(kb) == {"not_modified": 3}


async def test_F82_other_content_behind_the_same_size_and_time_is_found_by_hash(docs: Path, store: Path) -> None:
    async with opened(store) as kb:
        await kb.runs.crawl(str(docs), name="docs")
        write(docs / "index.md", "# Start\n\nWelcome to the syenite notes."[:37])
        write(docs / "index.md", "# Start\n\nWelcome to the granate notes.")
        assert await refreshed(kb) == {"not_modified": 3}
    async with opened(store, {"files.verify": "hash"}) as kb:
        assert await refreshed(kb) == {"changed": 1, "unchanged": 2}
        assert len(await found(kb, "granate")) == 1


async def test_F80_a_vanished_or_emptied_root_keeps_everything(kb: KnowledgeBase, docs: Path, store: Path) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    before = index_of(store)
    docs.rename(docs.with_name("away"))
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    assert "cannot be read" in str(report.error)
    docs.mkdir()
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    assert "empty" in str(report.error)
    assert index_of(store) == before
    docs.rmdir()
    docs.with_name("away").rename(docs)
    assert await refreshed(kb) == {"not_modified": 3}


@pytest.mark.parametrize("what", ["folder", "file"])
async def test_F78_a_root_that_became_a_link_is_not_followed_and_keeps_everything(
    kb: KnowledgeBase, docs: Path, store: Path, tmp_path: Path, what: str
) -> None:
    write(tmp_path / "secret" / "id_rsa", "# Key\n\nSomething about obsidian.")
    root = docs if what == "folder" else docs / "index.md"
    await kb.runs.crawl(str(root), name="docs")
    before = index_of(store)
    root.rename(tmp_path / "moved")
    root.symlink_to(tmp_path / "secret" if what == "folder" else tmp_path / "secret" / "id_rsa")
    for full in (False, True):
        (report,) = await kb.runs.refresh(["docs"], full=full)
        assert report.state == "failed"
        assert "is now reached by a symbolic link" in str(report.error)
    await kb.search.search("granite", max_age=timedelta(0))  # looks at files one by one
    assert index_of(store) == before
    root.unlink()
    (tmp_path / "moved").rename(root)
    assert set(await refreshed(kb)) == {"not_modified"}


@pytest.mark.parametrize("what", ["folder", "file"])
async def test_F80_a_root_that_became_something_else_keeps_everything(
    kb: KnowledgeBase, docs: Path, store: Path, tmp_path: Path, what: str
) -> None:
    root = docs if what == "folder" else docs / "index.md"
    await kb.runs.crawl(str(root), name="docs")
    before = index_of(store)
    root.rename(tmp_path / "moved")
    write(root if what == "folder" else root / "other.md", "# Other\n\nSomething about obsidian.")
    (report,) = await kb.runs.refresh(["docs"], full=True)
    assert report.state == "failed"
    assert f"was a {what} and is now a" in str(report.error)
    await kb.search.search("granite", max_age=timedelta(0))
    assert index_of(store) == before


async def test_what_is_cut_off_names_the_setting_that_says_so(kb: KnowledgeBase, docs: Path) -> None:
    report = await kb.runs.crawl(str(docs), name="docs", rules={"max_pages": 2})
    assert any("the limit is crawl.max_pages" in note for note in [*report.notes, str(report.error)])


async def test_F84_a_moved_file_keeps_its_vectors(kb: KnowledgeBase, docs: Path) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    (docs / "guide").rename(docs / "handbook")
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"new": 2, "deleted": 2, "not_modified": 1}
    assert (report.chunks_embedded, report.chunks_reused) == (0, 2)


async def test_what_the_rules_leave_out_later_leaves_the_index(kb: KnowledgeBase, docs: Path) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    write(docs / ".gitignore", "use.md\n")
    assert await refreshed(kb) == {"deleted": 1, "not_modified": 2}
    report = await kb.runs.crawl(str(docs), name="docs", rules={"exclude": ["guide/*"]})
    assert counts(report) == {"deleted": 1, "not_modified": 1}
    (docs / ".gitignore").unlink()
    report = await kb.runs.crawl(str(docs), name="docs", rules={"exclude": []})
    assert counts(report) == {"new": 2, "not_modified": 1}


async def test_a_file_that_is_no_text_is_reported_once_and_not_opened_again(
    kb: KnowledgeBase, docs: Path, work: type[InProcess]
) -> None:
    (docs / "blob").write_bytes(bytes(range(256)) * 9)
    os.utime(docs / "blob", (OLD, OLD))
    report = await kb.runs.crawl(str(docs), name="docs")
    assert counts(report) == {"new": 3, "refused": 1}
    done = work.calls
    write(docs / "index.md", "# Start\n\nEdited words.", OLD + 9)
    assert await refreshed(kb) == {"changed": 1, "not_modified": 2}
    assert work.calls - done == 2  # one file: read, compared


async def test_a_file_that_comes_back_is_found_again(kb: KnowledgeBase, docs: Path) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    text = (docs / "index.md").read_text()
    (docs / "index.md").unlink()
    assert await refreshed(kb) == {"deleted": 1, "not_modified": 2}
    write(docs / "index.md", text)
    assert await refreshed(kb) == {"new": 1, "not_modified": 2}


async def test_one_file_is_a_source_too(kb: KnowledgeBase, docs: Path) -> None:
    report = await kb.runs.crawl(str(docs / "guide" / "use.md"), name="docs")
    assert counts(report) == {"new": 1}
    assert await refreshed(kb) == {"not_modified": 1}
    write(docs / "guide" / "use.md", "# Use\n\nAsk the slate oracle.", OLD + 3)
    assert await refreshed(kb) == {"changed": 1}


async def test_many_deletions_wait_for_a_word(kb: KnowledgeBase, docs: Path, store: Path) -> None:
    for number in range(30):
        write(docs / f"note{number}.md", f"# Note {number}\n\nWords.")
    await kb.runs.crawl(str(docs), name="docs")
    for number in range(20):
        (docs / f"note{number}.md").unlink()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.held) == ("needs_confirmation", 20)
    assert len(index_of(store)) == 33
    (report,) = await kb.runs.refresh(["docs"])  # asked again, as nothing was settled
    assert (report.state, report.held) == ("needs_confirmation", 20)
    await kb.runs.confirm(report.run)
    assert len(index_of(store)) == 13


async def test_a_run_that_was_stopped_leaves_no_mark(kb: KnowledgeBase, docs: Path, store: Path) -> None:
    """Else the next one would take an unfinished look for a whole one."""
    kb.stop()
    report = await kb.runs.crawl(str(docs), name="docs")
    assert report.state == "cancelled"
    async with opened(store) as again:
        assert await refreshed(again) == {"new": 3}
        assert await refreshed(again) == {"not_modified": 3}


async def test_a_state_seen_between_two_equal_ones_is_not_taken_for_them(kb: KnowledgeBase, docs: Path) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    text = (docs / "index.md").read_text()
    write(docs / "index.md", "# Start\n\nOther words entirely.", OLD + 1)
    await kb.search.search("granite", max_age=timedelta(0))  # looks at one file alone
    write(docs / "index.md", text, OLD)
    assert await refreshed(kb) == {"changed": 1, "not_modified": 2}


@pytest.mark.slow
async def test_P6_P7_A27_four_versions_of_real_docs_as_a_folder(
    shared: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    data = shared / "data" / "docs-refresh"
    with tarfile.open(data / "fastapi.tar.xz") as archive:
        archive.extractall(tmp_path / "versions", filter="data")
    steps = json.loads((data / "fastapi.json").read_text())["steps"]
    docs, kept = tmp_path / "docs", tmp_path / "kept.db"
    _show(tmp_path / "versions" / "s1", docs)
    words = {"embedding.provider": "none"}  # vectors are counted elsewhere
    async with opened(kept, words) as kb:
        await kb.runs.crawl(str(docs), name="docs")
        for step in steps:
            _show(tmp_path / "versions" / step["to"], docs)
            done = work.calls
            (report,) = await kb.runs.refresh(["docs"])
            assert report.state == "completed"
            reported = counts(report)
            assert (reported["new"], reported.get("deleted", 0)) == (len(step["added"]), len(step["removed"]))
            assert reported["changed"] + reported.get("unchanged", 0) == len(step["modified"])
            assert reported.get("unchanged", 0) <= 4  # edits that no reader sees
            assert reported["not_modified"] == step["unchanged"]
            read = reported["new"] + reported["changed"] + reported.get("unchanged", 0)
            assert work.calls - done == read + reported["changed"]  # read; compared
            again = (await kb.runs.refresh(["docs"]))[0]
            assert counts(again) == {"not_modified": len(rows(kept, "select 1 from pages where content_hash <> ''"))}
    async with opened(tmp_path / "fresh.db", words) as kb:
        await kb.runs.crawl(str(docs), name="docs")
    assert index_of(kept) == index_of(tmp_path / "fresh.db")
    assert_sound(kept)


def _show(version: Path, docs: Path) -> None:
    """Let a folder hold one version, writing only what differs, as an editor or `git pull` does."""
    docs.mkdir(exist_ok=True)
    wanted = {str(file.relative_to(version)) for file in version.rglob("*") if file.is_file()}
    for file in [file for file in docs.rglob("*") if file.is_file()]:
        if str(file.relative_to(docs)) not in wanted:
            file.unlink()
    for name in wanted:
        target = docs / name
        if not target.exists() or target.read_bytes() != (version / name).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(version / name, target)
            at = OLD + int(version.name[1:])  # one that was written just now would be read once more
            os.utime(target, (at, at))


async def test_an_unchanged_folder_counts_as_checked(docs: Path, store: Path, work: type[InProcess]) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(str(docs), name="docs")
        clock.advance(3600)
        assert await refreshed(kb) == {"not_modified": 3}
        assert {page.checked_at for page in await kb.pages.of_source("docs")} == {clock()}
        clock.advance(60)
        found = await kb.search.search("granite", checked_within=timedelta(seconds=90))
        assert [hit.checked_at for hit in found.hits[:1]] == [clock() - timedelta(seconds=60)]
        assert (await kb.sources.view("docs")).oldest_check == clock() - timedelta(seconds=60)


async def test_why_says_which_rule_leaves_a_file_out(kb: KnowledgeBase, docs: Path) -> None:
    write(docs / "build" / "x.md", "# X")
    write(docs / ".gitignore", "build/")
    (docs / "logo.png").write_bytes(b"png")
    report = await kb.runs.crawl(str(docs), name="docs")
    assert report.notes == ("folder: 2 files left out: 1 binary, 1 ignored (`afresh why FILE` explains one)",)
    with pytest.raises(UsageError, match=r"build/x\.md is left out of docs: ignored"):
        await kb.pages.explain(str(docs / "build" / "x.md"))
    with pytest.raises(UsageError, match=r"logo\.png is left out of docs: binary"):
        await kb.pages.explain(str(docs / "logo.png"))


async def test_nothing_to_read_is_reported(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report = await kb.runs.crawl(str(tmp_path / "empty"), name="docs")
    assert "no readable page was found" in report.notes[0]


@EVERY_STORE
async def test_R10_G4_history_and_why_name_the_listing_that_shows_a_file_unchanged(
    kb: KnowledgeBase, docs: Path, store: Path
) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    write(docs / "guide/use.md", "# Use\n\nAsk the slate oracle.", OLD + 1)
    (report,) = await kb.runs.refresh(["docs"])
    root, file = file_url(str(docs)), file_url(str(docs / "guide/install.md"))
    (listing,) = [each for each in await kb.runs.attempts(report.run, limit=9) if each.unchanged]
    assert (listing.outcome, listing.unchanged, listing.url) == ("not_modified", 2, root)
    message = f"unchanged according to the listing of {root}, run {report.run}"
    proven, first = await kb.pages.history(file)
    assert (proven.run_id, proven.outcome, proven.reason, proven.source) == (
        report.run,
        "not_modified",
        message,
        "docs",
    )
    assert (first.outcome, first.unchanged) == ("success", None)
    why = await kb.pages.explain(file)
    assert (why.summary, why.attempts) == (message, 2)
    changed = await kb.pages.history(file_url(str(docs / "guide/use.md")))
    assert [each.unchanged for each in changed if each.outcome] == [None, None]
    app = make_app(kb, settings(store), works=False)
    reported = (await ask(app, "GET", f"/api/v1/pages/{why.page.id}/history")).json["items"]
    assert (reported[0]["run_id"], reported[0]["reason"], reported[0]["unchanged"]) == (report.run, message, 2)
    pages = {f"/pages/{why.page.id}/attempts": message, f"/runs/{report.run}/attempts": "2 pages unchanged"}
    for place, words in pages.items():
        displayed = (await ask(app, "GET", place)).body.decode()
        assert words in re.sub(r"<wbr>|&#x200b;|\u200b", "", displayed), place
