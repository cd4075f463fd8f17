"""What a run writes to its log, and that no secret of a crawl gets out by any door (F111, P19)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import rows
from tests.e2e.sites import lay, page, star

from afresh.cli import main
from afresh.testing import TinySite

HUSH = "hush9f3a"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings in the environment: a store, loopback, and a log in JSON."""
    file = tmp_path / "afresh.log"
    for name, value in {
        "AFRESH_STORE": f"sqlite:///{tmp_path / 'kb.db'}",
        "AFRESH_NETWORK__ALLOW": "127.0.0.1/32",
        "AFRESH_POLICY__RETRIES": "0",
        "AFRESH_LOG": str(file),
        "AFRESH_LOG__FORMAT": "json",
        "AFRESH_LOG__LEVEL": "debug",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    return file


def events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def test_F111_a_run_says_its_beginning_its_failures_and_its_end(log: Path, tiny: TinySite) -> None:
    lay(tiny, star(30))
    assert main(["crawl", tiny.url, "--name", "docs", "-q"]) == 0
    tiny.fail("/p1", 503)
    for number in range(10, 30):
        tiny.fail(f"/p{number}", 404)
    log.unlink()
    assert main(["refresh", "docs", "-q"]) == 3
    reported = events(log)
    assert reported[0]["event"] == "run started"
    assert (reported[-2]["event"], reported[-2]["state"]) == ("run ended", "needs_confirmation")
    assert reported[-2]["held"] == "20"
    assert (reported[-1]["event"], reported[-1]["then"]) == (
        "deletions need confirmation",
        f"afresh confirm {reported[-1]['run']}",
    )
    failed = [each for each in reported if each["event"] == "page blocked 5xx"]
    assert [(each["url"], each["status"]) for each in failed] == [(tiny.at("/p1"), "503")]
    assert sum(each["event"] == "page gone" for each in reported) == 20
    assert sum(each["level"] == "debug" for each in reported) >= 8, "what went as usual is told with debug"


def test_F111_a_page_that_is_not_believed_is_reported(log: Path, tiny: TinySite) -> None:
    lay(tiny, star(5))
    main(["crawl", tiny.url, "--name", "docs", "-q"])
    tiny.put("/p1", "")
    main(["refresh", "docs", "-q"])
    assert [each["url"] for each in events(log) if each["event"] == "page doubted"] == [tiny.at("/p1")]


def test_F111_an_outage_of_robots_is_reported(log: Path, tiny: TinySite) -> None:
    lay(tiny, star(2))
    tiny.fail("/robots.txt", 503)
    main(["crawl", tiny.url, "--name", "docs", "-q"])
    assert {"event": "robots.txt unreachable", "level": "warning"}.items() <= events(log)[-2].items()


def test_F111_a_host_that_asks_for_a_pause_is_reported(log: Path, tiny: TinySite) -> None:
    lay(tiny, star(1))
    tiny.fail("/p0", 429, retry_after="3600")
    main(["crawl", tiny.url, "--name", "docs", "-q"])
    paused = [each for each in events(log) if each["event"] == "host paused"]
    assert [(each["host"], each["seconds"]) for each in paused] == [(f"127.0.0.1:{tiny.port}", "3600")]


def test_F111_P19_hostile_addresses_are_one_line_and_their_tokens_are_masked(
    log: Path, tiny: TinySite, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the store an address is whole; in the log, on stderr and in errors its secrets are not."""
    lay(tiny, {"/": [f"/a?token={HUSH}&page=2", f"/b?q=%0Arun%20ended%1B[2J&api_key={HUSH}"]})
    tiny.put(f"/a?token={HUSH}&page=2", page("A"))
    assert main(["crawl", tiny.url, "--name", "docs", "-vv"]) == 0
    assert main(["why", f"{tiny.url}nowhere?access_token={HUSH}", "-vv", "--json"]) == 2
    assert main(["crawl", f"https://me:{HUSH}@docs.example.org/", "-vv", "--json"]) == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line.startswith("20")]
    assert lines
    assert HUSH not in captured.err + captured.out + log.read_text()
    assert "token=***&page=2" in log.read_text()
    assert all(line.isprintable() for line in log.read_text().splitlines())
    assert rows(log.with_name("kb.db"), "select 1 from pages where url like ?", f"%token={HUSH}&page=2")


def test_P19_no_secret_of_the_settings_is_reported_or_kept(
    log: Path, tiny: TinySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "other.db"
    monkeypatch.setenv("AFRESH_STORE", f"sqlite:///{store}?password={HUSH}")
    lay(tiny, star(1))
    for words in (
        ["crawl", tiny.url, "--name", "docs"],
        *(["status"], ["doctor"], ["config", "show"], ["config", "check"], ["sources"], ["plan", "docs"]),
    ):
        main([*words, "-vv"])
        main([*words, "--json"])
    captured = capsys.readouterr()
    assert HUSH not in captured.out + captured.err + log.read_text()
    for file in tmp_path.iterdir():
        assert HUSH.encode() not in file.read_bytes() or not file.is_file(), file


def test_F13_a_full_disk_for_the_log_leaves_the_crawl_alone(
    log: Path, dev_full: Path, tiny: TinySite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AFRESH_LOG", str(dev_full))
    lay(tiny, star(3))
    assert main(["crawl", tiny.url, "--name", "docs"]) == 0
    assert capsys.readouterr().err.count("afresh continues") == 1
