"""The links of a generated city, scored from outside: what a model is asked, and what needs no model."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.e2e.program import Program
from tests.fakes.chat_server import ChatServer
from tests.fakes.city import CitySite
from tests.fakes.city_pages import NAV

from afresh.links.score import LinkToScore

BATCH = 50
CRAWL = ("--name", "city", "--keywords", "budget,minutes,contact:0.5,fee", "--json")
SETTINGS = """\
ai: {{provider: openai, model: small, base_url: "{base_url}"}}
embedding: {{provider: none}}
"""


@pytest.fixture(scope="module")
def city() -> Iterator[CitySite]:
    """A city of some size."""
    with CitySite(80) as site:
        yield site


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A model on loopback that goes by what links say, and not by where they lead."""

    def by_text(link: LinkToScore, keywords: Sequence[str]) -> dict[str, float]:
        return {keyword: 1.0 for keyword in keywords if keyword in link.text.lower()}

    with ChatServer() as server:
        server.scorer = by_text
        yield server


def asked_of(model: ChatServer) -> list[LinkToScore]:
    """What the model was asked since the last time."""
    asked = [link for chat in model.asked for link in chat.links]
    model.asked.clear()
    return asked


def test_C9_C10_C17_C22_a_city_costs_a_call_per_fifty_new_links_then_none_then_one_for_one_link(
    store: Path, city: CitySite, model: ChatServer
) -> None:
    program = Program(store, in_process=True)
    with program.file.open("a") as file:
        file.write(SETTINGS.format(base_url=model.base_url))
    first = program.run("crawl", city.url, *CRAWL).report
    calls, most = model.calls, max(model.links_per_call)
    asked = asked_of(model)
    assert first["state"] == "completed"
    assert len(asked) == len(set(asked)) > first["new"] >= 80
    assert calls == first["link_calls"] <= math.ceil(len(asked) / BATCH)
    assert most <= BATCH
    labels = [link.text for link in asked]
    assert all(labels.count(label) == 1 for _, label in NAV), "once, though it stands on every page"
    assert LinkToScore(city.at("/departments/parks/fees/"), "Fees of Parks") in asked, "known to scripts alone"
    fees = program.run("links", "city", "--keyword", "fee", "--json").report
    assert {link["url"] for link in fees} == {city.at(path) for path in city.hidden if "fees" in path}
    assert {link["score"] for link in fees} == {1.0}

    second = program.run("crawl", city.url, *CRAWL).report
    assert (asked_of(model), second["ai_calls"]) == ([], 0)
    assert (second["links_saved"], second["link_calls_saved"]) == (len(asked), calls)

    city.add_to_nav("/elections/", "Elections")
    third = program.run("crawl", city.url, *CRAWL).report
    assert (third["new"], model.calls) == (1, 1)
    assert asked_of(model) == [LinkToScore(city.at("/elections/"), "Elections")]


def test_C7_C16_C18_a_city_gives_up_its_budgets_contacts_and_minutes_without_any_model(
    store: Path, city: CitySite
) -> None:
    program = Program(store, in_process=True)
    assert program.run("crawl", city.url, *CRAWL).report["ai_calls"] == 0
    listed = program.run("links", "city", "--json").report
    for keyword, part in (("budget", "budget"), ("contact", "/contact"), ("minutes", "/minutes/")):
        fitting = [link for link in listed if keyword in link["keywords"]]
        wanted = {city.at(path) for path in (*city.pages, *city.files) if part in path}
        assert {link["url"] for link in fitting} == wanted, keyword
        assert all(link["keywords"][keyword] == 1.0 for link in fitting), keyword
    only = program.run("links", "city", "--keyword", "budget", "--json").report
    assert only == [link for link in listed if "budget" in link["keywords"]]
