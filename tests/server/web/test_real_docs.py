"""The web interface over a real documentation, before and after it went on to its next version."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.e2e.real_docs import serve, versions_in
from tests.server.web.showroom import Stand, standing
from tests.server.web.watching import watched

from afresh.kb import KnowledgeBase

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHANGES: list[int] = []  # as the runs told them
PAGES = 143 + 1  # of the second version, and the index


@pytest.fixture(scope="module")
def docs(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A server over two versions of a documentation."""
    versions = versions_in(shared)

    async def fill(kb: KnowledgeBase, stand: Stand) -> None:
        serve(stand.atlas, versions["s1"])
        first = await kb.runs.crawl(stand.atlas.url, name="fastapi")
        assert (first.state, first.new) == ("completed", 145)
        serve(stand.atlas, versions["s2"])
        [second] = await kb.runs.refresh(["fastapi"])
        assert (second.state, second.new, second.deleted) == ("completed", 3, 4)
        assert second.changed > 90
        CHANGES.append(first.new + second.new + second.changed + second.deleted)

    with standing(tmp_path_factory.mktemp("docs") / "store.db", fill) as made:
        yield made


def test_a_real_documentation_is_overseen_read_searched_mapped_and_compared(docs: Stand, chromium: "Browser") -> None:
    with watched(chromium, docs.url) as seen:
        page = seen.page

        def look(place: str) -> None:
            page.goto(place)
            assert seen.flaws() == [], place

        look("/")
        card = page.locator(".card", has_text="fastapi")
        expect(card).to_contain_text(re.compile(rf"Pages\s*{PAGES}"))
        expect(card.locator(".receipt")).to_contain_text(re.compile(r"\d+ processed, \d+ skipped.*; saved \d+ %"))
        content = f"{CHANGES[-1]} changes in the last 30 days"
        assert card.locator("svg").get_attribute("aria-label") == content

        look("/sources/1")
        expect(page.locator("table.rows tbody tr")).to_have_count(50)
        page.click("text=More")
        expect(page.locator("table.rows tbody tr")).to_have_count(50)
        page.goto("/sources/1?text=security&status=active")
        listed = page.locator("td.main a")
        assert 5 < listed.count() < 30
        listed.nth(1).click()
        expect(page.locator("article.text, .text").first).to_be_visible()
        assert seen.flaws() == []

        page.goto("/sources/1?status=deleted")
        page.locator("td.main a").first.click()
        expect(page.locator(".empty")).to_contain_text("was deleted")
        expect(page.locator("article.text")).to_have_count(0)
        assert seen.flaws() == []

        page.goto("/search")
        page.fill("#q", "how do I upload a file with a form")
        expect(page.locator(".hit mark").first).to_be_visible()
        assert "UploadFile" in (page.text_content("#hits") or "")
        assert not re.search(r"```|\]\(http|^#+ ", page.text_content(".hits") or "", re.MULTILINE)
        assert seen.flaws() == []

        page.goto("/sources/1/map")
        page.wait_for_selector(f"#map[data-ready='{PAGES}']")

        look("/sources/1/changes")
        expect(page.locator(".timeline > li")).to_have_count(20)
        expect(page.locator(".timeline .pill", has_text="changed").first).to_be_visible()
        expect(page.locator(".diff tr.new").first).to_be_attached()
        page.goto(str(page.locator(".timeline a", has_text="more line").first.get_attribute("href")))
        page.wait_for_url("**/pages/*/versions")
        assert page.locator(".diff tr").count() > 60  # here all of it
