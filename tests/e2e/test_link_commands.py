"""Scored links on the command line: one command sets everything up, another lists what matters."""

import csv
import io
from pathlib import Path

import pytest
from tests.e2e.program import Program

from afresh.testing import TinySite

HOME = """<title>City</title><main><h1>City</h1><p>All about the city and how it works for you.</p>
<a href="/budget">Budget of 2026</a> <a href="/contacts">=HYPERLINK("http://evil.example")</a>
<a href="/parks">Parks</a></main>"""
LEAF = "<title>{0}</title><main><h1>{0}</h1><p>This page speaks of {0} and of little else.</p></main>"


@pytest.fixture
def city(tiny: TinySite) -> TinySite:
    """A home page with three links."""
    tiny.put("/", HOME)
    for path in ("/budget", "/contacts", "/parks"):
        tiny.put(path, LEAF.format(path[1:]))
    return tiny


def test_C1_C7_C16_one_command_scores_the_links_of_a_site_and_another_lists_the_best(
    city: TinySite, store: Path
) -> None:
    program = Program(store, in_process=True)
    crawled = program.run("crawl", city.url, "--name", "city", "--keywords", "Budget,contact:0.5")
    assert crawled.code == 0, crawled.err
    assert "links: 3 scored" in crawled.out
    again = program.run("crawl", city.url, "--json").report
    assert (again["links_scored"], again["links_saved"], again["ai_calls"]) == (0, 3, 0), "flags are kept"
    listed = program.run("links", "city", "--json").report
    assert [(link["url"], link["score"]) for link in listed] == [
        (city.at("/budget"), 1.0),
        (city.at("/contacts"), 0.5),
        (city.at("/parks"), None),
    ]
    assert set(listed[0]) >= {"url", "score", "keywords", "comment", "crawl_time", "pages"}
    assert (listed[0]["keywords"], listed[0]["pages"]) == ({"budget": 1.0}, [city.url])
    only = program.run("links", "city", "--keyword", "contact", "--min-score", "0.4", "--csv").out
    [row] = csv.DictReader(io.StringIO(only))
    assert (row["url"], row["score"]) == (city.at("/contacts"), "0.5")
    assert row["text"].startswith("'=HYPERLINK"), "a spreadsheet takes it for text"
    assert "budget" in program.run("links", "city").out
    assert "keywords" in program.run("show", "city").out


def test_C7_a_page_or_a_keyword_that_a_source_lacks_is_named(city: TinySite, store: Path) -> None:
    program = Program(store, in_process=True)
    program.run("crawl", city.url, "--name", "city", "--keywords", "budget")
    ended = program.run("links", "city", "--page", city.at("/nowhere"), "--json")
    assert (ended.code, ended.report) == (0, [])
    assert f"{city.at('/nowhere')} is not indexed" in ended.err
    ended = program.run("links", "city", "--keyword", "Sewage")
    assert "links of city are not scored by 'sewage': city has the keywords budget" in ended.err
    assert "No links match." in ended.out
    assert program.run("links", "city", "--page", city.at("/parks"), "--keyword", "budget").err == ""
    assert program.run("show", "city", "--json").report["keywords"] == {"budget": 1.0}
    program.run("crawl", city.url, "--keywords", "")
    assert "city has no keywords" in program.run("links", "city", "--keyword", "budget").err


def test_the_best_first_without_keywords_says_that_it_needs_them(city: TinySite, store: Path) -> None:
    program = Program(store, in_process=True)
    assert "needs --keywords" in program.run("crawl", city.url, "--crawl-order", "score").err
    assert "needs --keywords" not in program.run("crawl", city.url, "--keywords", "budget").err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--keywords", "budget:3"], "expected a weight from 0 to 1 for 'budget', got 3"),
        (["--keywords", ",,,"], "expected keywords such as budget,contact:0.5, got ',,,'"),
        (["--keywords", "a,A"], "the keyword 'a' occurs twice"),
        (["--crawl-order", "best"], "--crawl-order: expected one of breadth, score"),
    ],
)
def test_C19_wrong_keywords_are_refused_before_anything_is_read(
    city: TinySite, store: Path, flags: list[str], message: str
) -> None:
    ended = Program(store).run("crawl", city.url, *flags)
    assert (ended.code, message in ended.err) == (2, True), ended.err
    assert not store.exists()
