"""Quality of extraction on pages of many kinds, with floors that may only rise.

The pages are of our own making; they imitate the structure of generators and sites, not their words.
"""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from eval.extraction import PAGES as LABELLED
from eval.extraction import Scored, scored

from afresh.extract import extract
from afresh.model.fetch import Body, Document

PAGES = Path(__file__).resolve().parents[1] / "data" / "html"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAGES / "expected.json").read_text(encoding="utf-8"))

KEPT_FLOOR = 1.0  # share of phrases of the content that are in the Markdown, in the form they must have
DROPPED_FLOOR = 1.0  # share of phrases of the boilerplate that are not

F1_FLOORS = {  # of the labelled pages of the web, by type
    "article": 0.935, "documentation": 0.94, "service": 0.88, "forum": 0.77, "listing": 0.70, "collection": 0.685,
    "product": 0.62,
}  # fmt: skip
F1_FLOOR, PRECISION_FLOOR = 0.84, 0.825


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


def test_labelled_pages_of_the_web_are_read_as_well_as_before(shared: Path) -> None:
    found = [*scored(shared / "data" / LABELLED.parent.name / LABELLED.name, apart=False)]
    found += scored(shared / "data" / LABELLED.parent.name / LABELLED.name, apart=True)
    assert fmean(each.f1 for each in found) >= F1_FLOOR
    assert fmean(each.precision for each in found) >= PRECISION_FLOOR
    by_type: dict[str, list[Scored]] = {}
    for each in found:
        by_type.setdefault(each.type, []).append(each)
    means = {kind: fmean(each.f1 for each in some) for kind, some in by_type.items()}
    assert not {kind: mean for kind, mean in means.items() if mean < F1_FLOORS[kind]}
