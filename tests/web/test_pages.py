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
    tabs = [f"{source}{tab}" for tab in ("", "/changes", "/links", "/runs", "/copies", "/settings")]
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
