"""What people do, in a real browser and on each database: add, watch, cancel, filter, search, confirm."""

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect
from tests.web.showroom import Stand
from tests.web.watching import watched

from afresh.testing import TinySite

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_source_is_added_with_a_preview_watched_and_cancelled(
    each_stand: Stand, chromium: "Browser"
) -> None:
    with TinySite.docs() as site, watched(chromium, each_stand.url) as seen:
        page = seen.page
        page.goto("/add")
        page.fill("#target", "ftp://nowhere")
        page.click("text=Preview")
        expect(page.get_by_role("alert")).to_contain_text("not a web address")
        page.fill("#target", site.url)
        page.click("text=Preview")
        expect(page.locator(".preview h2").first).to_have_text("Harbor")
        expect(page.locator(".preview")).to_contain_text("26 links of the start page belong")

        gate = site.hold("/guide/workers/")
        page.click("text=Scope and limits")
        page.fill("#f-max_pages", "27")
        page.fill("#f-name", "slowly")
        page.click("text=Add and read it")
        expect(page.locator(".live .run")).to_contain_text("slowly")
        gate.wait(timeout=60)  # the run cannot end now
        expect(page.locator(".live .numbers")).to_contain_text(
            re.compile(r"[1-9]\d* checked"), timeout=20_000
        )
        page.goto("/")
        page.get_by_role("button", name="Cancel the run of slowly").click()
        expect(page.locator("h1 + .acts .pill")).to_have_text("stopped early", timeout=20_000)
        site.release("/guide/workers/")

        page.get_by_role("navigation", name="Where you are").get_by_role("link", name="slowly").click()
        page.click("button:has-text('Refresh')")
        expect(page.locator("h1 + .acts .pill")).to_have_text("completed", timeout=20_000)
        page.get_by_role("navigation", name="Where you are").get_by_role("link", name="slowly").click()
        page.click(".tabs >> text=Settings")
        assert page.input_value("#f-max_pages") == "27"
        page.fill("#f-max_pages", "many")
        page.click("text=Save")
        expect(page.get_by_role("alert")).to_contain_text("max_pages")
        page.fill("#f-max_pages", "")
        page.fill("#f-schedule", "every 6h")
        page.fill("#f-exclude", "/private/*\n/releases/*")
        page.click("text=Save")
        expect(page.locator("[role=status].note")).to_contain_text("Saved")
        assert page.input_value("#f-exclude") == "/private/*\n/releases/*"

        page.fill("#name", "another")
        page.click("button:has-text('Delete')")
        expect(page.locator("main")).to_contain_text("nothing was deleted")
        page.go_back()
        page.fill("#name", "slowly")
        page.click("button:has-text('Delete')")
        page.wait_for_url(each_stand.url + "/")
        expect(page.locator("main")).not_to_contain_text("slowly")


def test_pages_are_filtered_and_searched_by_keyboard_alone(each_stand: Stand, chromium: "Browser") -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with watched(chromium, each_stand.url, permissions=permissions) as seen:
        page = seen.page
        page.goto(f"/sources/{each_stand.harbor}")
        expect(page.locator("table.rows tbody tr")).to_have_count(28)
        page.select_option("select[name=status]", "error")
        expect(page.locator("table.rows tbody tr")).to_have_count(1)
        page.goto(f"/sources/{each_stand.harbor}?language=en&depth=1")
        page.fill("input[name=text]", "INSTALL")
        page.keyboard.press("Enter")
        expect(page.locator("table.rows tbody tr")).to_have_count(1)

        page.goto("/")
        page.keyboard.press("/")
        page.keyboard.type("installer asks for nothing")
        page.keyboard.press("Enter")
        first = page.locator(".hit").first
        expect(first).to_contain_text("Installation")
        expect(first.locator("mark").first).to_be_visible()
        expect(first).to_contain_text("checked")
        page.get_by_role("button", name="cURL").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("curl ")
        assert "/api/v1/search?q=installer+asks+for+nothing" in copied

        page.keyboard.press("/")
        page.keyboard.type("Retries")
        expect(page.locator(".hit h2").first).to_have_text("Retries and back-off")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Retries and back-off")
        expect(page.locator(".why")).to_contain_text("Why")
        page.click(".tabs >> text=Links")
        expect(page.locator("main")).to_contain_text("Leads to it")


def test_the_brake_shows_what_would_go_and_deletes_only_when_told(
    each_stand: Stand, chromium: "Browser"
) -> None:
    with watched(chromium, each_stand.url) as seen:
        page = seen.page
        page.goto("/")
        page.click("text=See what would go")
        expect(page.locator(".brake .gone li")).to_have_count(18)
        seen.answers = [False, True]
        page.click("text=Delete 18 pages")
        expect(page.locator(".brake")).to_be_visible()
        page.click("text=Delete 18 pages")
        expect(page.locator("h1 + .acts .pill")).to_have_text("completed")
        expect(page.locator(".timeline .pill.bad")).to_have_count(18)
