"""The former text of a page is put back by a button, in a real browser."""

from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect
from tests.server.web.showroom import Stand, standing
from tests.server.web.watching import watched

from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONG = "Every harbour has a keeper who writes down which ship came and which one left. " * 60


async def lost(kb: KnowledgeBase, stand: Stand) -> None:
    """Read a page twice; between, it loses nearly all of its text."""
    stand.atlas.put("/", f"<title>Atlas</title><main><h1>Atlas</h1><p>{LONG}</p></main>")
    await kb.runs.crawl(stand.atlas.url, name="atlas")
    stand.atlas.put("/", "<title>Atlas</title><main><h1>Atlas</h1><p>Soon.</p></main>")
    await kb.runs.refresh(["atlas"])
    [page] = await kb.pages.records(None, ALL_PAGES, limit=2)
    stand.page = page.id


def test_U1_F123_a_press_on_the_button_puts_the_former_text_back(tmp_path: Path, chromium: "Browser") -> None:
    with standing(tmp_path / "store.db", lost) as stand, watched(chromium, stand.url) as seen:
        seen.page.goto(f"/pages/{stand.page}")
        expect(seen.page.locator("main")).not_to_contain_text("harbour")
        button = seen.page.get_by_role("button", name="Restore previous text")
        expect(button).to_be_visible()
        assert seen.flaws() == []
        button.click()
        expect(seen.page.locator("main")).to_contain_text("Every harbour has a keeper")
        expect(button).to_have_count(0)
        assert seen.flaws() == []
        seen.assert_clean()
