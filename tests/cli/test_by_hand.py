"""`afresh set`, `page`, `link`, `runs` and `cancel`: what REST changes, changed from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.sites import page

from afresh.cli import main
from afresh.testing import TinySite


@pytest.fixture
def site() -> Any:
    with TinySite() as site:
        site.put("/", page("Start", ["/b"]))
        for path in ("/b", "/hidden"):
            site.put(path, page(path))
        yield site


def test_records_are_changed_by_hand(
    tmp_path: Path, site: TinySite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    monkeypatch.setenv("AFRESH_NETWORK__ALLOW", "127.0.0.1/32")
    monkeypatch.setenv("AFRESH_EMBEDDING__PROVIDER", "none")
    monkeypatch.chdir(tmp_path)

    def call(*words: str, code: int = 0) -> str:
        assert main([*words, "--store", f"sqlite:///{tmp_path / 'afresh.db'}"]) == code, capsys.readouterr()
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    def told(*words: str) -> Any:
        return json.loads(call(*words, "--json"))

    def addresses() -> set[str]:
        return {each["url"] for each in told("pages", "docs")}

    call("crawl", site.url, "--name", "docs", "--quiet")

    own = told("set", "docs", "max_pages=50", "exclude=/x/*, /y/*", "max_params=none", "keywords=b:0.5")
    assert own["settings"] == {
        "max_pages": 50,
        "exclude": ["/x/*", "/y/*"],
        "max_params": None,
        "keywords": {"b": 0.5},
    }
    assert told("show", "docs")["rules"]["max_pages"] == 50
    assert call("set", "docs", "--reset", "exclude", "--reset", "keywords") == (
        "docs has of its own: max_pages=50, max_params=none.\n"
    )
    assert "whole number" in call("set", "docs", "max_pages=many", code=2)
    assert "did you mean max_pages" in call("set", "docs", "max_pagse=3", code=2)
    assert "did you mean exclude" in call("set", "docs", "--reset", "exclud", code=2)
    assert "KEY=VALUE" in call("set", "docs", "max_pages", code=2)
    assert "did you mean docs" in call("set", "dogs", "max_pages=3", code=2)
    assert told("show", "docs")["rules"]["max_pages"] == 50

    renamed = told("set", "docs", "--rename", "guide@2")
    assert (renamed["source"], renamed["url"], renamed["notes"]) == ("guide@2", site.url, [])
    assert "guide@2 is read from" in call("set", "guide@2", "--url", site.at("/b"))
    assert "would be read as github" in call("set", "guide@2", "--url", "owner/repo", code=2)
    assert call("set", "guide", "--rename", "tour@3") == "guide@2 is now tour@3.\n"
    both = call("set", "tour@3", "--rename", "guide@2", "--url", site.url)
    assert both.startswith(f"tour@3 is now guide@2.\nguide@2 is read from {site.url}")
    assert told("set", "guide", "--rename", "docs", "--url", site.url)["url"] == site.url
    assert "cannot be the name" in call("set", "docs", "--rename", "a b", code=2)

    added = told("page", "add", "docs", site.at("/hidden"))
    assert "no part of docs" in call("page", "add", "docs", "https://elsewhere.example/", code=2)
    call("refresh", "docs", "--due", "--quiet")
    assert site.at("/hidden") in addresses()
    assert site.at("/hidden") in call("page", "look", str(added["id"]), "--after", "2h")
    assert told("page", "remove", site.at("/hidden"), "--in", "docs")["id"] == added["id"]
    assert addresses() == {site.url, site.at("/b")}
    assert "no page" in call("page", "remove", site.at("/nowhere"), code=2)

    link = told("link", "add", site.url, site.at("/hidden"), "--text", "Hidden")
    assert told("link", "set", site.at("/hidden"), "--score", "1.5")["score"] == 1.5
    assert "0<=x<=2" in call("link", "set", site.at("/hidden"), "--score", "2.5", code=2)
    words = told("link", "set", site.at("/hidden"), "--keywords", "b:0.5,a")
    assert (words["keywords"], 0 < words["score"] < 2) == ({"a": 1.0, "b": 0.5}, True)
    assert "from 0 to 1" in call("link", "set", site.at("/hidden"), "--keywords", "b:3", code=2)
    told("link", "set", site.at("/hidden"), "--score", "1.5")
    kept = told("link", "set", str(link["id"]), "--comment", "read first")
    assert (kept["score"], kept["comment"]) == (1.5, "read first")
    assert told("links", "docs")[0]["url"] == site.at("/hidden")
    call("link", "remove", site.at("/hidden"))
    assert [each["url"] for each in told("links", "docs")] == [site.at("/b")]

    waits = told("crawl", site.url, "--name", "docs", "--detach")["run"]
    assert told("cancel", str(waits))["state"] == "cancelled"
    assert "not under way" in call("cancel", str(waits), code=2)
    assert [each["state"] for each in told("runs", "docs")] == ["cancelled", "completed", "completed"]
    assert call("runs", "--csv", "--limit", "1").splitlines()[1].startswith(f"{waits},docs")

    call("crawl", site.url, "--name", "twin", "--again", "--quiet")
    assert "--in LABEL" in call("page", "remove", site.at("/b"), code=2)
