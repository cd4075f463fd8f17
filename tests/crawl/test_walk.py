"""The walk of a page is the one that docs/explanation/architecture.md numbers."""

import re
from collections import defaultdict
from pathlib import Path

from tests.e2e.library import opened
from tests.e2e.sites import lay, star

from afresh.events import Event, PageStep, Progress, WithoutSteps
from afresh.testing import TinySite

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "architecture.md"


def numbered() -> list[str]:
    """The steps that the document lists, in its order."""
    found = re.findall(r"^(\d+)\. `(\w+)`", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [name for _, name in found]


class Tape:
    """Remembers the steps of every page."""

    def __init__(self) -> None:
        self.steps: dict[str, list[str]] = defaultdict(list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, PageStep):
            self.steps[event.url].append(event.name)


def test_the_document_numbers_six_steps() -> None:
    assert numbered() == ["request", "fetch", "extract", "decide", "prepare", "commit"]


async def test_A25_a_first_crawl_a_304_and_a_change_walk_as_the_document_says(tmp_path: Path) -> None:
    steps, without_body = numbered(), [step for step in numbered() if step != "extract"]
    with TinySite() as site:
        lay(site, star(3))
        async with opened(tmp_path / "kb.db") as kb:
            first, second = Tape(), Tape()
            await kb.runs.crawl(site.url, name="docs", listener=first)
            assert first.steps == {site.at(path): steps for path in site.paths}
            site.edit("/p1", add_paragraph="changed")
            site.delete("/p2")
            await kb.runs.refresh(["docs"], listener=second)
    expected = dict.fromkeys(("/", "/p0", "/p2"), without_body) | {"/p1": steps}
    assert {f"/{url.split('/', 3)[3]}": walked for url, walked in second.steps.items()} == expected


async def test_a_listener_that_needs_no_steps_gets_everything_else(tmp_path: Path) -> None:
    received: list[Event] = []
    with TinySite() as site:
        lay(site, star(3))
        async with opened(tmp_path / "kb.db") as kb:
            await kb.runs.crawl(site.url, name="docs", listener=WithoutSteps(received.append))
    assert {type(event) for event in received} == {Progress}
