"""Files of the knowledge base: read, summed up and paid for only when they changed."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.kb_files import LONG_AGO, Base, message_of
from tests.e2e.library import EVERY_STORE
from tests.fakes.chat_server import ChatServer


@pytest.fixture
def base(store: Path, capsys: pytest.CaptureFixture[str], work: type[InProcess]) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(store.parent, capsys, chat, links_file_path=None)
        base.note("b.md", "# Boats\n\nA note about boats.\n")
        base.note("sub/tea.txt", "How tea is made.\n")
        yield base


def written_at(file: Path) -> tuple[int, int]:
    return file.stat().st_ino, file.stat().st_mtime_ns


@EVERY_STORE
def test_E3_E8_E9_E10_E12_E17_new_files_are_read_summed_up_and_reported_in_both_files(base: Base) -> None:
    report = base.run()
    assert (report["file_records"], report["summaries"], report["ai_calls"]) == (2, 2, 2)
    assert base.chat.calls == 2
    record = base.sources["sub/tea.txt"]
    assert set(record) == {"source_type", "content_hash", "summary_text", "last_indexed_at", "file"}
    assert record["content_hash"] == message_of(base, "sub/tea.txt")
    assert record["file"] == {"rel_path": "sub/tea.txt", "size_bytes": 17, "mtime_ns": LONG_AGO * 10**9}
    reported = base.sources["b.md"]["summary_text"]
    assert base.index.read_text() == f"b.md\n{reported}\n\nsub/tea.txt\n{record['summary_text']}\n\n"
    hits = base.run("search", "boats", "--in", "kb")
    assert [hit["url"].rpartition("/")[2] for hit in hits] == ["b.md"]


def test_E1_E2_E18_E31_unchanged_nothing_is_read_paid_for_or_written(base: Base, work: type[InProcess]) -> None:
    base.run()
    before = [written_at(file) for file in (base.cache, base.index)]
    work.calls = 0
    with base.unpaid():
        report = base.run()
    assert (report["written"], report["files"]["not_modified"], report["files"]["bytes"]) == (False, 2, 0)
    assert work.calls == 0
    assert [written_at(file) for file in (base.cache, base.index)] == before


def test_E18_same_size_and_time_is_unchanged_also_for_a_file_just_written(base: Base) -> None:
    file = base.notes / "just.txt"
    file.write_text("one")
    base.run()
    status, record = file.stat(), base.sources["just.txt"]
    file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with base.unpaid():
        assert base.run()["files"]["bytes"] == 0
    assert base.sources["just.txt"] == record


def test_E13_E19_another_time_and_the_same_text_costs_no_summary(base: Base) -> None:
    base.run()
    reported = base.sources["b.md"]
    base.note("b.md", "\r\n\r\n# Boats  \r\n\r\nA note about boats.\t\r\n\r\n", at=LONG_AGO + 5)
    with base.unpaid():
        base.run()
    after = base.sources["b.md"]
    assert after["file"] == {"rel_path": "b.md", "size_bytes": 41, "mtime_ns": (LONG_AGO + 5) * 10**9}
    assert (after["content_hash"], after["summary_text"]) == (reported["content_hash"], reported["summary_text"])


def test_E19_another_text_is_summed_up_again_and_nothing_else_is(base: Base) -> None:
    base.run()
    base.chat.script.append("Ships now.")
    base.note("b.md", "# Ships\n", at=LONG_AGO + 5)
    before, other = base.chat.calls, base.sources["sub/tea.txt"]
    assert base.run()["summaries"] == 1
    assert base.chat.calls == before + 1
    assert base.sources["b.md"]["summary_text"] == "Ships now."
    assert base.sources["b.md"]["content_hash"] == message_of(base, "b.md")
    assert base.sources["sub/tea.txt"] == other
    assert "Ships now." in base.index.read_text()


@EVERY_STORE
def test_E16_a_file_that_is_gone_leaves_cache_and_index_and_is_new_when_it_is_back(base: Base) -> None:
    base.run()
    (base.notes / "b.md").unlink()
    assert base.run()["removed"] == 1
    assert list(base.sources) == ["sub/tea.txt"]
    assert "b.md" not in base.index.read_text()
    base.note("b.md", "# Boats\n\nA note about boats.\n")
    assert base.run()["summaries"] == 1


def test_F80_a_folder_that_is_away_or_empty_leaves_everything_as_it_was(base: Base) -> None:
    base.run()
    before = (base.cache.read_bytes(), base.index.read_bytes())
    away = base.notes.rename(base.place / "away")
    assert "kb.sources_dir: " in base.run(code=1)["error"]
    base.notes.mkdir()
    assert "is empty" in base.run(code=1)["error"]
    base.forget_store()
    assert "put a file there" in base.run(code=1)["error"]  # the cache knows that there were some
    base.notes.rmdir()
    assert "all its pages are kept" in base.run(code=1)["error"]
    base.notes.mkdir()
    base.notes.rmdir()
    away.rename(base.notes)
    assert (base.cache.read_bytes(), base.index.read_bytes()) == before
    with base.unpaid():
        assert base.run()["written"] is False


def test_E16_files_that_are_gone_beside_a_new_store_leave_and_no_other(base: Base) -> None:
    base.run()
    base.forget_store()
    (base.notes / "b.md").unlink()
    with base.unpaid():
        assert base.run()["removed"] == 1
    assert list(base.sources) == ["sub/tea.txt"]


def test_G2_a_folder_that_was_emptied_is_let_go_with_one_file_and_a_word(base: Base) -> None:
    for number in range(12):
        base.note(f"{number:02}.txt", f"Note {number}.")
    base.run()
    shutil.rmtree(base.notes)
    base.note("left.txt", "What is left.")
    assert "run afresh confirm 2 and then afresh init-kb" in base.say("init-kb", code=3)
    held = base.run(code=3)["files"]
    assert (held["state"], held["held"], len(base.sources)) == ("needs_confirmation", 14, 15)
    base.run("confirm", str(held["run"]))
    with base.unpaid():
        assert base.run()["removed"] == 14
    assert list(base.sources) == ["left.txt"]


def test_G2_F80_many_files_that_only_the_cache_knows_do_not_leave_at_once(base: Base) -> None:
    for number in range(12):
        base.note(f"{number:02}.txt", f"Note {number}.")
    base.run()
    before = (base.cache.read_bytes(), base.index.read_bytes())
    base.forget_store()
    kept = base.notes.rename(base.place / "kept")
    base.note("other.txt", "Another folder.")
    for _ in range(2):
        assert "14 of 14 entries in the cache" in base.run(code=1)["error"]
        assert (base.cache.read_bytes(), base.index.read_bytes()) == before
    shutil.rmtree(base.notes)
    kept.rename(base.notes)
    with base.unpaid():
        assert base.run()["written"] is False
    base.forget_store()
    shutil.rmtree(base.notes)
    base.note("other.txt", "Another folder.")
    base.edit(lambda sources: sources.clear())
    base.run()
    assert list(base.sources) == ["other.txt"]


def test_G7_another_knowledge_base_in_the_same_store_is_an_error_that_names_both(base: Base) -> None:
    base.run()
    before = (base.cache.read_bytes(), base.index.read_bytes())
    base.configure(sources_dir="other", index_path="o.txt", index_cache_path="o.json", links_file_path=None)
    (base.place / "other").mkdir()
    (base.place / "other" / "o.md").write_text("# Other")
    error = base.run(code=1)["error"]
    assert all(word in error for word in (str(base.notes), str(base.cache), "store.url", "afresh remove"))
    base.configure(links_file_path="links.txt", sources_dir=None, index_path="o.txt", index_cache_path="o.json")
    base.list("https://example.org/")
    assert "store.url" in base.run(code=1)["error"]  # neither is the folder left out in silence
    base.configure(links_file_path=None)
    with base.unpaid():
        base.run()
    assert (base.cache.read_bytes(), base.index.read_bytes()) == before
    assert base.run("search", "boats", "--in", "kb")


def test_G7_a_folder_that_the_settings_name_again_takes_the_place_of_the_former(base: Base) -> None:
    base.run()
    base.notes.rename(base.place / "moved")
    base.configure(sources_dir="moved", links_file_path=None)
    with base.unpaid():
        base.run()
    assert len(base.sources) == 2
    assert base.run("search", "boats", "--in", "kb")


@pytest.mark.parametrize("wrong", ["nowhere", "hollow", "afresh.txt"])
def test_F80_settings_that_name_a_wrong_folder_leave_everything_searchable(base: Base, wrong: str) -> None:
    base.run()
    before = (base.cache.read_bytes(), base.index.read_bytes())
    (base.place / "hollow").mkdir()
    (base.place / "afresh.txt").write_text("https://example.org/\n")
    base.configure(sources_dir=wrong, links_file_path=None)
    error = base.run(code=1)["error"]
    assert all(word in error for word in ("kb.sources_dir", wrong, str(base.notes)))
    assert (base.cache.read_bytes(), base.index.read_bytes()) == before
    assert base.run("search", "boats", "--in", "kb")


def test_E15_no_other_command_takes_the_name_or_sets_the_rules_of_the_knowledge_base(base: Base) -> None:
    other = base.place / "other"
    other.mkdir()
    (other / "o.md").write_text("# Other")
    for name in ("kb/files", "kb/links"):
        assert "--name" in base.run("crawl", str(other), "--name", name, code=2)["error"]
    base.run()
    assert "init-kb" in base.run("crawl", str(base.notes), "--exclude", "*.txt", code=2)["error"]
    base.run("crawl", str(base.notes), "--exclude", "*.txt", "--name", "mine", "--again")
    base.run()
    assert list(base.sources) == ["b.md", "sub/tea.txt"]


def test_E15_a_folder_that_is_a_source_already_goes_on_as_one(base: Base) -> None:
    base.run("crawl", str(base.notes), "--name", "mine")
    base.run()
    assert base.run("crawl", str(base.notes))["source"] == "mine"


def test_G7_what_the_cache_says_wins_over_the_store(base: Base) -> None:
    base.run()
    base.edit(lambda sources: sources["b.md"].update(summary_text="By hand."))
    with base.unpaid():
        base.run()
    assert base.index.read_text().startswith("b.md\nBy hand.\n\n")
    base.edit(lambda sources: sources.pop("sub/tea.txt"))
    assert base.run()["summaries"] == 1  # a line that was removed makes a source new
    base.edit(
        lambda sources: (sources["b.md"].update(content_hash="0" * 64), sources["b.md"]["file"].update(mtime_ns=1))
    )
    assert base.run()["summaries"] == 1  # read, and another hash than on record


def test_G7_E4_a_cache_beside_a_new_store_is_believed_and_the_files_are_searchable(base: Base) -> None:
    base.run()
    base.edit(lambda sources: sources["b.md"].update(content_hash="0" * 64, summary_text="Kept."))
    base.forget_store()
    cache = base.sources
    with base.unpaid():
        base.run()
    assert {name: each["summary_text"] for name, each in base.sources.items()} == {
        name: each["summary_text"] for name, each in cache.items()
    }
    assert base.sources["b.md"]["content_hash"] == "0" * 64
    assert base.run("search", "boats", "--in", "kb")


def test_G7_a_cache_that_cannot_be_used_stops_the_update_and_is_never_touched(base: Base) -> None:
    base.run()
    index = base.index.read_bytes()
    for broken in ("{", '{"schema_version": 99, "generated_at": "", "sources": {}}'):
        base.cache.write_text(broken)
        base.note("new.txt", "new")
        assert "cannot be used as the cache" in base.run(code=1)["error"]
        assert (base.cache.read_text(), base.index.read_bytes()) == (broken, index)


def test_G13_without_a_summary_the_old_content_and_record_stay_until_there_is_one(base: Base) -> None:
    base.run()
    old = base.sources["b.md"]
    base.note("b.md", "# Ships\n", at=LONG_AGO + 5)
    base.chat.down()
    base.run(code=1)
    assert base.sources["b.md"] == old
    base.chat.up()
    assert base.run()["summaries"] == 1
    assert base.sources["b.md"]["content_hash"] == message_of(base, "b.md")
