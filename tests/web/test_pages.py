"""Every page in a real browser: no breach of its policy, no other host, and no complaint of axe."""

from typing import TYPE_CHECKING

from tests.web.showroom import Stand
from tests.web.watching import watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIRST_LOAD = 150_000


def places(stand: Stand) -> list[str]:
    """Every page there is."""
    source, page = f"/sources/{stand.harbor}", f"/pages/{stand.page}"
    names = ("", "/changes", "/links", "/runs", "/pictures", "/map", "/copies", "/settings")
    tabs = [f"{source}{tab}" for tab in names]
    parts = [f"{page}{tab}" for tab in ("", "/passages", "/links", "/attempts", "/versions")]
    return [
        *("/", "/add", "/search", "/search?q=install", "/search?q=zzzz", "/changes", "/login", "/nothing"),
        *(*tabs, f"{source}/changes?view=split", f"{source}?status=error", *parts, f"/runs/{stand.braked}"),
    ]


def test_every_page_is_accessible_fits_a_phone_and_keeps_to_its_policy(
    stand: Stand, chromium: "Browser"
) -> None:
    with watched(chromium, stand.url) as seen:
        for place in places(stand):
            seen.page.emulate_media(color_scheme="light")
            seen.page.set_viewport_size({"width": 1280, "height": 800})
            answer = seen.page.goto(place)
            assert answer is not None
            assert answer.status == (404 if place == "/nothing" else 200), place
            assert seen.flaws() == [], place
            seen.page.emulate_media(color_scheme="dark")
            assert seen.flaws("color-contrast") == [], place
            seen.page.set_viewport_size({"width": 360, "height": 740})
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360, place
            seen.assert_clean()


def test_the_first_page_is_small_and_comes_from_here_alone(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        seen.page.goto("/")
        seen.page.wait_for_load_state("load")
        assert 0 < seen.loaded < FIRST_LOAD


def test_colours_are_chosen_and_kept(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url, color_scheme="light") as seen:
        seen.page.goto("/")
        seen.page.click("#theme")
        seen.page.click("#theme")
        seen.page.goto("/changes")
        assert seen.page.get_attribute("html", "data-theme") == "dark"
        assert seen.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_pictures_say_in_words_and_tables_what_they_show(stand: Stand, chromium: "Browser") -> None:
    with watched(chromium, stand.url) as seen:
        seen.page.goto("/")
        assert "changes in the last 30 days" in str(seen.page.get_attribute("svg.sparkline", "aria-label"))
        seen.page.goto(f"/sources/{stand.harbor}/pictures")
        days = seen.page.locator("svg.calendar:not(.key) rect")
        assert days.count() == 53 * 7
        assert seen.page.locator("svg.calendar:not(.key) rect.l4 title").text_content() is not None
        for name in ("by day", "gone and failed pages", "a minute", "due now"):
            assert seen.page.get_by_role("img", name=name).count() == 1, name
        seen.page.get_by_text("As a table", exact=True).click()
        assert seen.page.get_by_role("region", name="Changes by month").locator("tbody tr").count() >= 1
        assert seen.flaws() == []
        assert seen.page.get_by_role("region", name="Hosts").get_by_text("127.0.0.1").count() == 1


def test_the_map_zooms_tells_of_pages_and_opens_them(stand: Stand, chromium: "Browser") -> None:
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
        page.get_by_text("As a list", exact=True).click()
        assert seen.flaws() == []
        page.focus("#map")
        page.keyboard.press("n")
        page.keyboard.press("n")
        assert "depth 1" in (page.text_content("#map-told") or "")
        page.keyboard.press("Enter")
        page.wait_for_url("**/pages/*")

        page.goto(f"/sources/{stand.harbor}/map")
        page.wait_for_selector("#map[data-ready]")
        page.locator("#map").click()  # its middle, where the root is
        page.wait_for_url("**/pages/*")
        assert page.locator("h1").text_content()
