"""The knowledge base as it is set up: its command, its settings, its example."""

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.kb_files import Base, asked, page
from tests.e2e.program import ROOT
from tests.fakes.chat_server import ChatServer

from afresh.testing import TinySite

EXAMPLES = ROOT / "examples"
VARIABLES = {
    "sources_dir": "elsewhere",
    "links_file_path": "list.txt",
    "index_path": "INDEX",
    "index_cache_path": "CACHE",
    "url_refresh_min_interval_seconds": 11.0,
    "url_refresh_max_age_seconds": 12.0,
    "url_refresh_budget_per_init": 13,
    "url_refresh_fail_backoff_base_seconds": 14.0,
    "url_refresh_fail_backoff_max_seconds": 15.0,
    "runtime_refresh_enabled": False,
    "runtime_refresh_tick_seconds": 16.0,
    "url_refresh_budget_per_tick": 17,
    "file_watch_enabled": False,
    "file_watch_debounce_seconds": 18.0,
    "links_watch_enabled": False,
    "links_watch_debounce_seconds": 19.0,
}


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str], work: type[InProcess]) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(tmp_path, capsys, chat, links_file_path=None)
        base.note("b.md", "# Boats\n\nA note about boats.\n")
        yield base


def test_E5_E6_settings_come_from_the_file_and_the_environment(
    base: Base, monkeypatch: pytest.MonkeyPatch, tiny: TinySite
) -> None:
    tiny.put("/a", page("apples"))
    elsewhere = base.place / "other.txt"
    elsewhere.write_text(tiny.at("/a"))
    monkeypatch.setenv("AFRESH_KB__LINKS_FILE_PATH", str(elsewhere))
    monkeypatch.setenv("AFRESH_KB__URL_REFRESH_BUDGET_PER_INIT", "0")
    assert base.run()["due"] == 1
    assert asked(tiny) == []
    monkeypatch.setenv("AFRESH_KB__INDEX_PATH", str(base.place / "INDEX"))
    base.run()
    assert (base.place / "INDEX").read_bytes() == base.index.read_bytes()


def test_E5_E6_a_variable_takes_the_place_of_each_of_the_sixteen_keys(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(VARIABLES) == 16
    for key, value in VARIABLES.items():
        monkeypatch.setenv(f"AFRESH_KB__{key}".upper(), json.dumps(value).strip('"'))
    displayed = base.run("config", "show")
    assert {key: displayed["kb"][key] for key in VARIABLES} == VARIABLES


def test_E6_E22_E24_the_intervals_of_links_are_those_of_the_environment(
    base: Base, monkeypatch: pytest.MonkeyPatch, tiny: TinySite
) -> None:
    tiny.put("/a", page("apples"))
    base.list(tiny.at("/a"), tiny.at("/none"))
    monkeypatch.setenv("AFRESH_KB__LINKS_FILE_PATH", str(base.links))
    monkeypatch.setenv("AFRESH_KB__URL_REFRESH_MIN_INTERVAL_SECONDS", "500000")
    monkeypatch.setenv("AFRESH_KB__URL_REFRESH_FAIL_BACKOFF_BASE_SECONDS", "50000")
    base.run(code=1)
    waits = {name: base.wait(name) for name in base.sources if "://" in name}
    assert waits == {tiny.at("/a"): pytest.approx(500_000, abs=60), tiny.at("/none"): pytest.approx(50_000, abs=60)}


def test_E14_the_command_init_kb_is_installed_and_does_the_same(
    base: Base, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    program = EntryPoint("init_kb", scripts["init_kb"], "console_scripts").load()
    monkeypatch.setattr(sys, "argv", ["init_kb", "--json", "--config", str(base.program.file)])
    capsys.readouterr()
    assert program() == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["summaries"], report["written"], base.chat.calls) == (1, True, 1)
    again = base.run()
    assert again.keys() == report.keys()
    assert again["written"] is False
    monkeypatch.setattr(sys, "argv", ["init_kb", "--unknown"])
    assert program() == 2


def test_E32_the_example_is_a_cache_that_an_update_believes(base: Base) -> None:
    shutil.copy(EXAMPLES / "index-cache.json", base.cache)
    (base.notes / "b.md").unlink()
    for name, record in base.sources.items():
        if "file" in record:
            about = record["file"]
            file = base.note(name, "x" * about["size_bytes"])
            os.utime(file, ns=(about["mtime_ns"], about["mtime_ns"]))
    base.list(*(name for name in base.sources if "://" in name))
    base.configure(url_refresh_budget_per_init=0)
    before = base.cache.read_bytes()
    with base.unpaid():
        report = base.run(code=1)
    assert (report["file_records"], report["url_records"], report["due"]) == (2, 3, 3)
    assert base.index.read_bytes() == (EXAMPLES / "index.txt").read_bytes()
    assert base.cache.read_bytes() == before


def test_without_a_folder_and_a_list_there_is_nothing_to_do(base: Base) -> None:
    base.configure(sources_dir=None, links_file_path=None)
    assert "kb.sources_dir" in base.run(code=2)["error"]


def test_people_are_reported_in_a_line_what_an_update_did(base: Base, tiny: TinySite) -> None:
    base.configure(url_refresh_budget_per_init=0)
    base.list(tiny.at("/a"))
    waits = "1 link is due at the next update"
    assert f"index.txt: 1 file, 1 link; 1 summary made; {waits}" in base.say("init-kb")
    assert f"index.txt: 1 file, 1 link; nothing changed; {waits}" in base.say("init-kb")
    base.configure()
    assert "To retry, run afresh init-kb when it is due" in base.say("init-kb", code=1)


def test_U4_a_link_whose_host_is_dead_is_reported_with_the_time_of_its_next_try(base: Base, tiny: TinySite) -> None:
    base.configure()
    tiny.fail("/down", 503)
    base.list(tiny.at("/down"))
    reported = base.say("init-kb", code=1)
    assert "with the next run" not in reported
    next_try = re.search(r"tried again by the first run after (\d{4}-\d\d-\d\d \d\d:\d\d) UTC", reported)
    assert next_try is not None, reported
    assert "To retry, run afresh init-kb when it is due" in reported
    tiny.requests.clear()
    reported = base.say("init-kb", code=1)
    assert f"next check after {next_try[1]} UTC)" in reported
    assert tiny.requests.paths() == [], "it backs off"
