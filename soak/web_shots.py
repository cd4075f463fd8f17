"""Screenshots of every web page after a month of changes, in light, dark and narrow."""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.server.web.showroom import Stand, browser, standing

from afresh.testing import TinySite
from soak.month import Month

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOOKS: dict[str, Any] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 860}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 360, "height": 760}},
}


def places(stand: Stand) -> dict[str, str]:
    """Return the pages by the names of their screenshots."""
    source, run = f"/sources/{stand.harbor}", f"/runs/{stand.braked}"
    return {
        "overview": "/",
        "add": "/add?target=" + stand.site.url,
        "source": source,
        "changes": f"{source}/changes",
        "changes-split": f"{source}/changes?view=split",
        "links": f"{source}/links",
        "runs": f"{source}/runs",
        "charts": f"{source}/charts",
        "map": f"{source}/map",
        "copies": f"{source}/copies",
        "settings": f"{source}/settings",
        "brake": run,
        "attempts": f"/runs/{stand.braked - 3}/attempts",  # of the last refresh of harbor, in which a page failed
        "page": "/open?in=harbor&url=" + stand.site.url + "getting-started/install/",
        "search": "/search?q=how+do+I+install+it",
        "search-empty": "/search",
        "error": "/nothing-here",
        "login": "/login",
    }


def main(arguments: Sequence[str]) -> int:
    """Take all screenshots; return 1 if a page did not answer."""
    parser = argparse.ArgumentParser(prog="python -m soak web_shots", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--window", action="store_true", help="only the visible part of a page")
    parser.add_argument("--only", default="", help="only screenshots whose name contains this")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    month = Month()
    with (
        tempfile.TemporaryDirectory() as folder,
        standing(Path(folder) / "store.db", month.pass_by, clock=month.clock) as stand,
        browser() as open_browser,
    ):
        return _take(open_browser, stand, given.folder, given.only, whole=not given.window)


def _take(browser: "Browser", stand: Stand, folder: Path, only: str, *, whole: bool) -> int:
    wrong = 0
    with _slowly(browser, stand):
        for look, options in LOOKS.items():
            context = browser.new_context(base_url=stand.url, **options)
            if only in "live":
                wrong += _shot(context.new_page(), "/", folder / f"live-{look}.png", whole)
            context.close()
    for look, options in LOOKS.items():
        context = browser.new_context(base_url=stand.url, **options)
        page = context.new_page()
        for name, place in places(stand).items():
            if only in name:
                wrong += _shot(page, place, folder / f"{name}-{look}.png", whole)
        context.close()
    print(f"screenshots are in {folder}")
    return int(wrong > 0)


@contextmanager
def _slowly(browser: "Browser", stand: Stand) -> Iterator[None]:
    """Keep a crawl active while the screenshots are taken."""
    with TinySite.docs() as site:
        gate = site.hold("/reference/metrics/")
        context = browser.new_context()
        answer = context.request.post(f"{stand.url}/api/v1/sources", data={"target": site.url, "name": "lantern"})
        assert answer.status == 201, answer.text()
        number = answer.json()["id"]
        gate.wait(timeout=60)
        yield
        site.release("/reference/metrics/")
        context.request.delete(f"{stand.url}/api/v1/sources/{number}")
        context.close()


def _shot(page: "Page", place: str, file: Path, whole: bool) -> bool:
    answer = page.goto(place)
    if place.startswith("/add"):
        page.click("text=Preview")
        page.wait_for_selector(".preview")
    if place.endswith("/map"):
        page.wait_for_selector("#map[data-ready]")
    page.screenshot(path=file, full_page=whole)
    return answer is None or answer.status >= 500
