"""Quality of extraction on pages of many kinds, with floors that may only rise.

The pages are of our own making; they imitate the structure of generators and sites, not their words.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from afresh.extract import extract
from afresh.model.fetch import Body, Document

PAGES = Path(__file__).resolve().parents[1] / "data" / "html"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAGES / "expected.json").read_text(encoding="utf-8"))

KEPT_FLOOR = 1.0  # share of phrases of the content that are in the Markdown, in the form they must have
DROPPED_FLOOR = 1.0  # share of phrases of the boilerplate that are not


def read(name: str) -> Document:
    data = (PAGES / f"{name}.html").read_bytes()
    return extract(Body(url=f"https://docs.example.org/guide/{name}.html", data=data))


def read_docbook() -> Document:
    data = (PAGES / "docbook.html").read_bytes()
    return extract(Body(url="https://docs.example.org/guide/kettle.html", data=data))


DOCUMENTS = {name: read_docbook() if name == "docbook" else read(name) for name in EXPECTED}


def lost(name: str) -> list[str]:
    return [phrase for phrase in EXPECTED[name]["keep"] if phrase not in DOCUMENTS[name].markdown]


def left(name: str) -> list[str]:
    return [phrase for phrase in EXPECTED[name]["drop"] if phrase in DOCUMENTS[name].markdown]


def test_there_are_pages_of_at_least_eight_kinds() -> None:
    assert len(EXPECTED) >= 8
    assert sorted(EXPECTED) == sorted(path.stem for path in PAGES.glob("*.html"))


def test_content_is_kept() -> None:
    missing = {name: lost(name) for name in EXPECTED if lost(name)}
    total = sum(len(page["keep"]) for page in EXPECTED.values())
    assert 1 - sum(map(len, missing.values())) / total >= KEPT_FLOOR, missing


def test_boilerplate_is_dropped() -> None:
    remaining = {name: left(name) for name in EXPECTED if left(name)}
    total = sum(len(page["drop"]) for page in EXPECTED.values())
    assert 1 - sum(map(len, remaining.values())) / total >= DROPPED_FLOOR, remaining


@pytest.mark.parametrize("name", EXPECTED)
def test_title_and_language(name: str) -> None:
    document = DOCUMENTS[name]
    assert (document.title, document.language) == (EXPECTED[name]["title"], EXPECTED[name]["language"])


@pytest.mark.parametrize("name", EXPECTED)
def test_links_of_the_whole_page_are_found(name: str) -> None:
    """Boilerplate is left out of the text, but its links are followed."""
    assert len(DOCUMENTS[name].links) >= 3 or name == "javadoc"
    assert all(link.url.startswith("http") and "#" not in link.url for link in DOCUMENTS[name].links)
