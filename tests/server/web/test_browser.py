"""Every page and what people do on them, in a real browser.

No breach of the policy, no other host, no complaint of axe; and the flows on each database: add, watch,
cancel, filter, search, confirm.
"""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.server.web.showroom import Stand, standing
from tests.server.web.watching import watched

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

ON_SQLITE = pytest.mark.parametrize("stand", ["sqlite"], indirect=True)
FIRST_LOAD = 150_000
BELOW_THE_BAR = """document.activeElement.getBoundingClientRect().bottom
  - document.querySelector(".top").offsetHeight"""


TAB_IN_SIGHT = """() => {
  const strip = document.querySelector(".tabs").getBoundingClientRect();
  const tab = document.querySelector(".tabs [aria-current]").getBoundingClientRect();
  return tab.left >= strip.left - 1 && tab.right <= strip.right + 1;
}"""
BROKEN_WORDS = """() => {
  const broken = [], range = document.createRange();
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/(?<![^\\s])[A-Za-z]{2,14}(?![^\\s,.:;])/g)) {
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


def places(stand: Stand) -> list[str]:
    """Every page there is."""
    source, page = f"/sources/{stand.harbor}", f"/pages/{stand.page}"
    names = ("", "/changes", "/links", "/runs", "/charts", "/map", "/copies", "/settings")
    tabs = [f"{source}{tab}" for tab in names]
    parts = [f"{page}{tab}" for tab in ("", "/passages", "/links", "/attempts", "/versions")]
    return [
        *("/", "/add", "/search", "/search?q=install", "/changes", "/login", "/nothing"),
        *(*tabs, f"{source}/changes?view=split", *parts, f"/runs/{stand.braked}"),
        *("/changes?kind=moved", f"/runs/{stand.braked}/attempts", f"/runs/{stand.braked}?kind=deleted"),
        *(f"/runs/{stand.synced}/documents", f"/runs/{stand.synced}/documents?outcome=failed"),
    ]


@ON_SQLITE
def test_every_page_is_accessible_fits_a_phone_and_keeps_to_its_policy(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        for place in places(stand):
            seen.page.emulate_media(color_scheme="light")
            seen.page.set_viewport_size({"width": 1280, "height": 800})
            answer = seen.page.goto(place)
            assert answer is not None
            assert answer.status == (404 if place == "/nothing" else 200), place
            assert seen.flaws() == [], place
            assert seen.glued() == [], place
            seen.page.emulate_media(color_scheme="dark")
            assert seen.flaws("color-contrast") == [], place
            seen.page.set_viewport_size({"width": 360, "height": 740})
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360, place
            seen.assert_clean()


@ON_SQLITE
def test_the_first_page_is_small_and_comes_from_here_alone(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        seen.page.goto("/")
        seen.page.wait_for_load_state("load")
        assert 0 < seen.loaded() < FIRST_LOAD
        packed = seen.page.request.get(f"/sources/{stand.harbor}")
        plain = seen.page.request.get(f"/sources/{stand.harbor}", headers={"accept-encoding": "identity"})
        assert (packed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
        assert packed.headers["vary"] == plain.headers["vary"] == "cookie, accept-encoding"
        assert packed.headers["content-security-policy"] == plain.headers["content-security-policy"]


@ON_SQLITE
def test_colours_are_chosen_and_kept(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url, color_scheme="light") as seen:
        seen.page.goto("/")
        seen.page.click("#theme")
        seen.page.click("#theme")
        seen.page.goto("/changes")
        assert seen.page.get_attribute("html", "data-theme") == "dark"
        assert seen.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


@ON_SQLITE
def test_charts_have_names_and_tables(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        seen.page.goto("/")
        assert "changes in the last 30 days" in str(seen.page.get_attribute("svg.sparkline", "aria-label"))
        seen.page.goto(f"/sources/{stand.harbor}/charts")
        days = seen.page.locator("svg.calendar:not(.key) rect")
        assert days.count() == 53 * 7
        assert seen.page.locator("svg.calendar:not(.key) rect.l4 title").text_content() is not None
        for name in ("by day", "deleted and failed pages", "per minute", "due now"):
            assert seen.page.get_by_role("img", name=name).count() == 1, name
        seen.page.get_by_text("Show as table", exact=True).click()
        assert seen.page.get_by_role("region", name="Changes by month").locator("tbody tr").count() >= 1
        assert seen.flaws() == []
        assert seen.page.get_by_role("region", name="Hosts").get_by_text("127.0.0.1").count() == 1


@ON_SQLITE
def test_the_map_zooms_names_pages_and_opens_them(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        page = seen.page

        def zoom() -> float:
            return float(page.get_attribute("#map", "data-zoom") or 0)

        page.goto(f"/sources/{stand.harbor}/map")
        page.wait_for_selector("#map[data-ready]")
        assert int(page.get_attribute("#map", "data-ready") or 0) > 20
        fitted = zoom()
        page.hover("#map")
        page.mouse.wheel(0, -400)
        page.wait_for_function("(before) => Number(map.dataset.zoom) > before", arg=fitted)
        near = zoom()
        page.get_by_role("button", name="Zoom out").click()
        assert zoom() < near
        page.focus("#map")
        page.keyboard.press("+")
        page.keyboard.press("+")
        assert zoom() > near
        page.keyboard.press("0")
        assert zoom() == fitted
        page.select_option("#map-colour", "rate")
        assert page.is_visible("#map-rate")
        assert not page.is_visible("#map-status")
        page.check("#map-links")
        page.get_by_text("Show as list", exact=True).click()
        assert seen.flaws() == []
        page.focus("#map")
        page.keyboard.press("n")
        page.keyboard.press("n")
        assert "depth 1" in (page.text_content("#map-info") or "")
        page.keyboard.press("Enter")
        page.wait_for_url("**/pages/*")

        page.goto(f"/sources/{stand.harbor}/map")
        page.wait_for_selector("#map[data-ready]")
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.locator("#map").click(button="middle")
        page.evaluate("fetch('/health').then((answer) => answer.text())")
        assert asked == [f"{stand.url}/health"]
        page.locator("#map").click()  # its middle, where the root is
        page.wait_for_url("**/pages/*")
        assert page.locator("h1").text_content()


@ON_SQLITE
def test_nobody_loses_their_place_or_words_when_a_run_ends(stand: Stand, chromium: "Browser") -> None:
    run = json.dumps('<article data-key="9 running" data-going="9"></article>')
    content = f'retry: 200\nevent: runs\ndata: {run}\n\nevent: runs\ndata: ""\n\n'  # again and again
    with watched(chromium, stand.url) as seen:
        page = seen.page
        page.route("**/live", lambda route: route.fulfill(content_type="text/event-stream", body=content))
        page.goto("/?text=harbor")
        for place in ("#sources h2 a", "#sources .acts button", "#sources input"):
            page.focus(place)
            if place.endswith("input"):
                page.keyboard.press("End")
                page.keyboard.type("!")
            page.evaluate("document.getElementById('sources').dataset.older = 1")
            page.wait_for_selector("#sources:not([data-older])")
            assert page.evaluate("(place) => document.activeElement.matches(place)", place), place
        page.keyboard.type("?")
        assert page.input_value("#sources input") == "harbor!?"
        gone = {"status": 404, "content_type": "text/html", "body": "<h1>It was removed</h1>"}
        page.route("**/?text=harbor", lambda route: route.fulfill(**gone))
        expect(page.locator("h1")).to_have_text("It was removed")  # and not as it was when the run began


@ON_SQLITE
def test_what_has_the_focus_is_seen_at_twice_the_size(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url, viewport={"width": 640, "height": 400}) as seen:
        seen.page.goto(f"/sources/{stand.harbor}")
        seen.page.focus("tbody tr:last-child a")
        for _ in range(20):  # upwards, to where the bar is
            seen.page.keyboard.press("Shift+Tab")
            below = seen.page.evaluate(BELOW_THE_BAR)
            assert below > 10


def test_a_source_is_added_with_a_preview_watched_and_cancelled(stand: Stand, chromium: "Browser") -> None:
    with TinySite.docs() as site, watched(chromium, stand.url) as seen:
        page = seen.page
        page.goto("/add")
        page.fill("#target", "ftp://nowhere")
        page.click("text=Preview")
        expect(page.get_by_role("alert")).to_contain_text("not a web URL")
        page.fill("#target", site.url)
        page.click("text=Preview")
        expect(page.locator(".preview h2").first).to_have_text("Harbor")
        expect(page.locator(".preview")).to_contain_text("26 links on the start page are in scope")
        page.click("text=Changes")
        page.go_back()  # to a preview that is made again
        expect(page.locator(".preview")).to_contain_text("26 links on the start page are in scope")

        gate = site.hold("/guide/workers/")
        page.click("text=Scope and limits")
        page.fill("#f-max_pages", "27")
        page.fill("#f-name", "slowly")
        page.click("text=Add and crawl")
        expect(page.locator(".live .run")).to_contain_text("slowly")
        gate.wait(timeout=60)  # the run cannot end now
        expect(page.locator(".live .numbers")).to_contain_text(re.compile(r"[1-9]\d* of 2\d checked"), timeout=20_000)
        bar = page.get_by_role("progressbar", name="Progress of the run of slowly")
        assert 0 < bar.evaluate("(each) => each.position") < 1
        content = page.locator("#summary .figures")  # follows what moves above it
        expect(content).to_contain_text(re.compile(r"Checked\s*[1-9]"), timeout=20_000)
        expect(page.locator("h1 + .acts")).to_contain_text("running")
        expect(page.locator("h1 + .acts")).not_to_contain_text("took")
        page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="slowly").click()
        expect(page.locator(".live .run")).to_contain_text("slowly")  # the source tells of it, too
        expect(page.get_by_role("button", name="Refresh")).to_be_disabled()
        assert seen.flaws() == []
        page.goto("/")
        page.get_by_role("button", name="Cancel the run of slowly").click()
        expect(page.locator("h1 + .acts .pill")).to_have_text("cancelled", timeout=20_000)
        site.release("/guide/workers/")

        page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="slowly").click()
        page.click("button:has-text('Refresh')")
        expect(page.locator("h1 + .acts .pill")).to_have_text("completed", timeout=20_000)
        page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="slowly").click()
        page.click(".tabs >> text=Settings")
        assert page.input_value("#f-max_pages") == "27"
        page.fill("#f-max_pages", "many")
        page.click("text=Save")
        expect(page.get_by_role("alert")).to_contain_text("Maximum pages: expected a whole number")
        expect(page.locator("#f-max_pages")).to_be_focused()
        assert page.get_attribute("#f-max_pages", "aria-invalid") == "true"
        assert seen.flaws() == []
        page.fill("#f-max_pages", "")
        page.fill("#f-schedule", "every 6h")
        page.fill("#f-exclude", "/private/*\n/releases/*")
        page.click("text=Save")
        expect(page.locator("[role=status].note")).to_contain_text("Saved")
        assert page.input_value("#f-exclude") == "/private/*\n/releases/*"

        page.fill("#name", "another")
        page.click("button:has-text('Delete')")
        expect(page.get_by_role("alert")).to_contain_text("Nothing was deleted")
        expect(page.locator("#name")).to_be_focused()
        page.fill("#name", "slowly")
        page.click("button:has-text('Delete')")
        expect(page.locator(".note.good")).to_have_text("Deleted slowly.")
        expect(page.locator(".cards")).not_to_contain_text("slowly")


def test_pages_are_filtered_and_searched_by_keyboard_alone(stand: Stand, chromium: "Browser") -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with watched(chromium, stand.url, permissions=permissions) as seen:
        page = seen.page
        page.goto(f"/sources/{stand.harbor}")
        expect(page.locator("table.rows tbody tr")).to_have_count(28)
        page.focus("select[name=status]")
        page.keyboard.press("ArrowDown")  # nothing happens before one asks for it
        page.select_option("select[name=status]", "error")
        assert page.evaluate("document.activeElement.name") == "status"
        assert "status" not in page.url
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("table.rows tbody tr")).to_have_count(2)  # one fails, and of one the copy does
        page.goto(f"/sources/{stand.harbor}?language=EN&depth=1")
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
        expect(page.locator("#toast")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("curl 'http")  # no token where none is needed
        assert "/api/v1/search?q=installer+asks+for+nothing&limit=20" in copied

        page.keyboard.press("/")
        page.keyboard.type("Retries")
        expect(page.locator(".hit h2").first).to_have_text("Retries and back-off")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Retries and back-off")
        expect(page.locator(".why")).to_contain_text("Details")
        page.get_by_role("button", name="Copy as Markdown").click()
        expect(page.locator("#toast")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith("# Retries and back-off")
        page.route("**/api/v1/pages/*/text", lambda route: route.fulfill(status=401))
        page.get_by_role("button", name="Copy as Markdown").click()
        expect(page.locator("#toast")).to_contain_text("Your login has expired")
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as on plain http
        page.get_by_role("button", name="Copy as Markdown").click()
        expect(page.locator("#toast")).to_contain_text("needs https")
        page.click(".tabs >> text=Links")
        expect(page.locator("main")).to_contain_text("Linked from")


@ON_SQLITE
def test_a_search_waits_for_its_filters_and_keeps_the_keyboard(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        page, held = seen.page, list["Route"]()
        page.route("**/search?*part=1", lambda route: held.append(route))
        page.clock.install()
        page.goto("/search?q=install")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.press("End")
        page.keyboard.type("er")
        page.clock.run_for(1_000)
        while not held:
            page.wait_for_timeout(10)  # until the question is on its way
        page.keyboard.press("ArrowDown")  # to a hit that goes when the answer comes
        assert page.evaluate("document.activeElement.matches('.hit a')")
        [asked] = held
        asked.continue_()
        expect(page.locator("#q")).to_be_focused()
        expect(page).to_have_url(f"{stand.url}/search?q=installer&mode=hybrid")

        page.fill("input[name=language]", "e")
        page.select_option("select[name=in]", "harbor")
        page.clock.run_for(1_000)
        assert len(held) == 1
        page.unroute("**/search?*part=1")
        page.focus("input[name=language]")
        page.keyboard.press("Enter")
        expect(page.locator("#hits")).to_have_text("language: expected a tag such as en or pt-BR, got 'e'")
        expect(page).to_have_url(f"{stand.url}/search?q=installer&mode=hybrid")


def test_blocked_deletions_are_listed_and_need_confirmation(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        page = seen.page
        page.goto("/")
        page.click("text=Review deletions")
        expect(page.locator(".brake .gone li")).to_have_count(18)
        seen.answers = [False, True]
        page.click("text=Delete 18 pages")
        expect(page.locator(".brake")).to_be_visible()
        page.click("text=Delete 18 pages")
        expect(page.locator("h1 + .acts .pill")).to_have_text("completed")
        expect(page.locator(".timeline .pill.bad")).to_have_count(18)


def test_what_a_run_looked_at_and_changed_is_found_by_outcome_and_kind(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        page = seen.page
        page.goto(f"/sources/{stand.harbor}/runs")
        page.locator("tr", has_text="refresh").locator("td a").first.click()  # in which a page answered 503
        page.click(".tabs >> text=Attempts")
        rows = page.locator("table.rows tbody tr")
        assert rows.count() > 20
        page.select_option("select[name=outcome]", "blocked_5xx")
        page.get_by_role("button", name="Filter").click()
        expect(page).to_have_url(re.compile(r"outcome=blocked_5xx$"))
        assert set(page.locator("table.rows .pill").all_text_contents()) == {"blocked 5xx"}
        expect(rows.first).to_contain_text("503")
        page.locator("td.main a").first.click()
        expect(page.locator(".why")).to_contain_text("blocked 5xx")

        page.goto(f"/sources/{stand.harbor}/changes")
        for kind, number in (("New", 20), ("Changed", 2), ("Moved", 0)):
            page.get_by_role("group", name="Kind of change").get_by_role("link", name=kind).click()
            expect(page.locator(".timeline > li")).to_have_count(number)
        expect(page.locator(".none")).to_have_text("No changes of this kind yet.")
        page.goto("/changes?kind=odd")
        expect(page.locator("main")).to_contain_text("kind: Input should be")


def test_R9_D21_the_run_of_a_sync_shows_its_documents_then_and_now(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        page = seen.page
        page.goto(f"/sources/{stand.harbor}/runs")
        expect(page.locator("tr", has_text="sync").first).to_contain_text("1 replaced, 1 failed")
        page.locator("tr", has_text="sync").first.locator("td a").first.click()
        expect(page).to_have_url(re.compile(rf"/runs/{stand.synced}/documents$"))
        expect(page.locator("h1 + .acts")).to_contain_text("sync")
        rows = page.locator("table.rows tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.filter(has_text="replaced").locator(".pill")).to_have_text(["replaced", "active", "active"])
        page.select_option("select[name=outcome]", "failed")
        page.get_by_role("button", name="Filter").click()
        expect(rows).to_have_count(1)
        expect(rows.locator(".wrong")).to_contain_text("was not written by afresh")


@ON_SQLITE
def test_U4_no_page_jumps_on_load_and_the_tab_that_is_open_is_in_sight(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        page = seen.page
        page.set_viewport_size({"width": 360, "height": 300})  # the tabs are far below
        for place in (f"/runs/{stand.braked}/attempts", f"/sources/{stand.harbor}/settings"):
            page.goto(place)
            assert page.evaluate("[scrollX, scrollY]") == [0, 0], place
            assert page.evaluate(TAB_IN_SIGHT), place
        assert page.evaluate("document.querySelector('.tabs').scrollLeft") > 0


@ON_SQLITE
def test_U4_no_word_is_broken_in_the_middle(stand: Stand, chromium: "Browser") -> None:
    source = f"/sources/{stand.harbor}"
    with watched(chromium, stand.url) as seen:
        for place in (f"{source}/runs", f"{source}/copies", f"/runs/{stand.synced}/documents", "/"):
            seen.page.goto(place)
            for width in (360, 520, 700, 820, 1000, 1280):
                seen.page.set_viewport_size({"width": width, "height": 800})
                assert seen.page.evaluate(BROKEN_WORDS) == [], (place, width)
                assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, (place, width)


def test_the_map_of_a_folder_has_no_root_and_no_line_that_is_no_link(tmp_path: Path, chromium: "Browser") -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in {"a": "see [b](b.md)", "b": "alone", "c": "alone, too"}.items():
        (notes / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
        os.utime(notes / f"{name}.md", (1_700_000_000, 1_700_000_000))  # a file of this second is read again

    async def read(kb: KnowledgeBase, stand: Stand) -> None:
        await kb.runs.crawl(str(notes), name="notes")
        (notes / "b.md").write_text("# b\n\nanother\n", "utf-8")
        [second] = await kb.runs.refresh(["notes"])
        assert (second.checked, second.changed) == (3, 1)

    with standing(tmp_path / "store.db", read) as stand, watched(chromium, stand.url) as seen:
        seen.page.goto("/sources/1/map")
        seen.page.wait_for_selector("#map[data-ready='3'][data-lines='1']")
        expect(seen.page.locator(".map")).to_contain_text("the centre is empty")
        assert seen.flaws() == []
        seen.page.goto("/runs/2/attempts")
        expect(seen.page.locator("table.rows tbody tr")).to_have_count(2)
        expect(seen.page.locator("main")).to_contain_text("All unchanged files share one attempt")


async def nothing(kb: KnowledgeBase, stand: Stand) -> None:
    """Leave a store empty."""


def test_an_empty_store_explains_how_to_begin(tmp_path: Path, chromium: "Browser") -> None:
    with standing(tmp_path / "store.db", nothing) as stand, watched(chromium, stand.url) as seen:
        seen.page.goto("/")
        assert seen.flaws() == []
        seen.page.get_by_label("Source URL or path").fill(stand.site.url)
        seen.page.keyboard.press("Enter")
        expect(seen.page.locator(".preview h2")).to_have_text("Harbor")
        seen.page.goto("/changes")
        expect(seen.page.locator(".none")).to_contain_text("No changes yet")
