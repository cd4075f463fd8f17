"""External stores in the settings, by name, their keys masked; and how a sync is told."""

from pathlib import Path

import pytest
from rich.console import Console

from afresh.cli.report import draw_sync
from afresh.cli.sync_commands import exit_code
from afresh.config import Config, describe, load, secret_values
from afresh.errors import ConfigError
from afresh.sync.reports import AuditView, SyncFailure, SyncReport

FILE = """\
sinks:
  team-search:
    kind: gemini
    store: fileSearchStores/team
    sources: [react, handbook@2]
  notes: {kind: folder, path: out, replace: upload_first}
"""


def settings(folder: Path, text: str, env: dict[str, str] | None = None) -> Config:
    (folder / "afresh.yaml").write_text(text)
    return load(None, env or {}, {}, folder)


def test_G11_stores_are_named_and_their_keys_stay_secret(tmp_path: Path) -> None:
    config = settings(tmp_path, FILE, {"AFRESH_SINKS__TEAM_SEARCH__API_KEY": "hush-hush"})
    team, notes = config.sinks["team-search"], config.sinks["notes"]
    assert (team.kind, team.sources, team.replace) == ("gemini", ("react", "handbook@2"), "delete_first")
    assert (notes.path, notes.replace, notes.at_once) == ("out", "upload_first", 10)
    assert team.api_key == "hush-hush"
    assert "hush" not in repr(config)
    assert describe(config)["sinks"]["team-search"]["api_key"] == "***"
    assert "hush-hush" in secret_values(config)
    assert team.place != notes.place
    assert load(None, {}, {}, tmp_path / "..").sinks == {}


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("sinks:\n  a: {kid: x}\n", "line 2: unknown key sinks.a.kid; did you mean kind?"),
        ("sinks:\n  a: {kind: folder}\n", "sinks.a.path is missing: kind: folder needs it"),
        ("sinks:\n  a: {path: x}\n", "sinks.a.kind is missing"),
        ("sinks:\n  a: {}\n", "sinks.a: expected keys"),
        ("sinks: 3\n", "sinks: expected keys"),
        ("sinks:\n  a: {kind: ftp}\n", "expected one of folder, gemini, openai, got 'ftp'"),
        ("sinks:\n  A b: {kind: folder}\n", "lowercase letters"),
        ("sinks:\n  a: {kind: folder, path: x}\n  b: {kind: folder, path: x/./y}\n", "are the same place"),
        (
            "sinks:\n  a: {kind: openai, store: s}\n  b: {kind: openai, store: s}\n",
            "sinks.b and sinks.a are the same place",
        ),
        ("sinks:\n  a: {kind: folder, path: x, at_once: 0}\n", "from 1 to 100, got 0"),
    ],
)
def test_a_wrong_store_is_refused_with_its_place(tmp_path: Path, text: str, reported: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(tmp_path, text)
    assert reported in str(refused.value)


def test_D20_a_report_says_what_was_done_what_is_left_and_why() -> None:
    done = SyncReport(sink="out", kind="folder", state="completed", uploaded=1200, waiting=2, stuck=1)
    broken = SyncReport(
        sink="out",
        kind="gemini",
        state="partial",
        failed=1,
        failures=(SyncFailure(url="https://docs.test/a", why="FAILED: too\x1b[31m long"),),
        audit=AuditView(listed=3, foreign=1, foreign_names=("theirs",)),
        error="quota",
    )
    console = Console(width=200)
    with console.capture() as displayed:
        console.print(draw_sync(done), draw_sync(broken))
    text = displayed.get()
    assert "1,200 uploaded, 0 replaced, 0 deleted, 0 verified, 2 waiting, 0 failed" in text
    assert "1 waiting too long (stuck)" in text
    assert "listed 3 documents: 0 missing, 0 orphaned, 0 doubled, 0 stale, 0 adopted, 1 foreign" in text
    assert "not written by afresh: theirs" in text
    assert "https://docs.test/a: FAILED: too" in text
    assert "\x1b[31m" not in text
    assert "quota" in text
    assert (exit_code([done]), exit_code([done, broken])) == (0, 1)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            SyncReport(sink="out", kind="folder", state="planned", dry_run=True, uploaded=3, deleted=1, waiting=2),
            "would upload 3 documents, would delete 1 document, 2 waiting",
        ),
        (SyncReport(sink="out", kind="folder", state="planned", dry_run=True), "nothing to do"),
    ],
)
def test_U4_a_dry_run_says_what_a_sync_would_do_and_never_that_it_did(report: SyncReport, message: str) -> None:
    console = Console(width=200)
    with console.capture() as displayed:
        console.print(draw_sync(report))
    assert message in displayed.get()
    assert "uploaded" not in displayed.get()


def test_R9_a_report_names_the_runs_that_it_is_on_record_by() -> None:
    console = Console(width=200)
    with console.capture() as displayed:
        console.print(draw_sync(SyncReport(sink="out", kind="folder", state="completed", runs=(12,))))
        console.print(draw_sync(SyncReport(sink="out", kind="folder", state="completed", runs=(12, 13))))
    assert ", run 12\n" in displayed.get()
    assert ", runs 12, 13\n" in displayed.get()
