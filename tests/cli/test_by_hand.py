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


class Docs:
    """The command line on a store with the source `docs`."""

    def __init__(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._store, self._capsys = f"sqlite:///{store}", capsys

    def call(self, *words: str, code: int = 0) -> str:
        assert main([*words, "--store", self._store]) == code, self._capsys.readouterr()
        captured = self._capsys.readouterr()
        return captured.out if code == 0 else captured.err

    def reported(self, *words: str) -> Any:
        return json.loads(self.call(*words, "--json"))

    def urls(self) -> set[str]:
        return {each["url"] for each in self.reported("pages", "docs")}


@pytest.fixture
def docs(tmp_path: Path, site: TinySite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Docs:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    monkeypatch.setenv("AFRESH_NETWORK__ALLOW", "127.0.0.1/32")
    monkeypatch.setenv("AFRESH_EMBEDDING__PROVIDER", "none")
    monkeypatch.chdir(tmp_path)
    docs = Docs(tmp_path / "afresh.db", capsys)
    docs.call("crawl", site.url, "--name", "docs", "--quiet")
    return docs


def test_settings_of_a_source_are_set_and_reset(docs: Docs) -> None:
    own = docs.reported("set", "docs", "max_pages=50", "exclude=/x/*, /y/*", "max_params=none", "keywords=b:0.5")
    assert own["settings"] == {"max_pages": 50, "exclude": ["/x/*", "/y/*"], "max_params": None, "keywords": {"b": 0.5}}
    assert docs.reported("show", "docs")["rules"]["max_pages"] == 50
    assert docs.call("set", "docs", "--reset", "exclude", "--reset", "keywords") == (
        "Settings of docs: max_pages=50, max_params=none.\n"
    )


def test_wrong_settings_name_the_nearest_and_change_nothing(docs: Docs) -> None:
    docs.call("set", "docs", "max_pages=50")
    assert "whole number" in docs.call("set", "docs", "max_pages=many", code=2)
    assert "did you mean max_pages" in docs.call("set", "docs", "max_pagse=3", code=2)
    assert "did you mean exclude" in docs.call("set", "docs", "--reset", "exclud", code=2)
    assert "KEY=VALUE" in docs.call("set", "docs", "max_pages", code=2)
    assert "did you mean docs" in docs.call("set", "dogs", "max_pages=3", code=2)
    assert docs.reported("show", "docs")["rules"]["max_pages"] == 50


def test_a_source_is_renamed_and_reads_another_url(docs: Docs, site: TinySite) -> None:
    renamed = docs.reported("set", "docs", "--rename", "guide@2")
    assert (renamed["source"], renamed["url"], renamed["notes"]) == ("guide@2", site.url, [])
    assert "guide@2 now reads" in docs.call("set", "guide@2", "--url", site.at("/b"))
    assert "would be read as github" in docs.call("set", "guide@2", "--url", "owner/repo", code=2)
    assert docs.call("set", "guide", "--rename", "tour@3") == "guide@2 is now tour@3.\n"
    both = docs.call("set", "tour@3", "--rename", "guide@2", "--url", site.url)
    assert both.startswith(f"tour@3 is now guide@2.\nguide@2 now reads {site.url}")
    assert docs.reported("set", "guide", "--rename", "docs", "--url", site.url)["url"] == site.url
    assert "cannot be the name" in docs.call("set", "docs", "--rename", "a b", code=2)


def test_pages_are_added_planned_and_removed(docs: Docs, site: TinySite) -> None:
    added = docs.reported("page", "add", "docs", site.at("/hidden"))
    assert "does not belong to docs" in docs.call("page", "add", "docs", "https://elsewhere.example/", code=2)
    docs.call("refresh", "docs", "--due", "--quiet")
    assert site.at("/hidden") in docs.urls()
    assert site.at("/hidden") in docs.call("page", "look", str(added["id"]), "--after", "2h")
    assert docs.reported("page", "remove", site.at("/hidden"), "--in", "docs")["id"] == added["id"]
    assert docs.urls() == {site.url, site.at("/b")}
    assert "no page" in docs.call("page", "remove", site.at("/nowhere"), code=2)


def test_links_are_added_scored_and_removed(docs: Docs, site: TinySite) -> None:
    link = docs.reported("link", "add", site.url, site.at("/hidden"), "--text", "Hidden")
    assert docs.reported("link", "set", site.at("/hidden"), "--score", "1.5")["score"] == 1.5
    assert "0<=x<=2" in docs.call("link", "set", site.at("/hidden"), "--score", "2.5", code=2)
    words = docs.reported("link", "set", site.at("/hidden"), "--keywords", "b:0.5,a")
    assert (words["keywords"], 0 < words["score"] < 2) == ({"a": 1.0, "b": 0.5}, True)
    assert "from 0 to 1" in docs.call("link", "set", site.at("/hidden"), "--keywords", "b:3", code=2)
    docs.reported("link", "set", site.at("/hidden"), "--score", "1.5")
    kept = docs.reported("link", "set", str(link["id"]), "--comment", "read first")
    assert (kept["score"], kept["comment"]) == (1.5, "read first")
    assert docs.reported("links", "docs")[0]["url"] == site.at("/hidden")
    docs.call("link", "remove", site.at("/hidden"))
    assert [each["url"] for each in docs.reported("links", "docs")] == [site.at("/b")]


def test_a_queued_run_is_cancelled_and_listed(docs: Docs, site: TinySite) -> None:
    waits = docs.reported("crawl", site.url, "--name", "docs", "--detach")["run"]
    assert docs.reported("cancel", str(waits))["state"] == "cancelled"
    assert "has already ended" in docs.call("cancel", str(waits), code=2)
    assert [each["state"] for each in docs.reported("runs", "docs")] == ["cancelled", "completed"]
    assert docs.call("runs", "--csv", "--limit", "1").splitlines()[1].startswith(f"{waits},docs")


def test_a_url_in_two_sources_needs_a_label(docs: Docs, site: TinySite) -> None:
    docs.call("crawl", site.url, "--name", "twin", "--again", "--quiet")
    assert "--in LABEL" in docs.call("page", "remove", site.at("/b"), code=2)
