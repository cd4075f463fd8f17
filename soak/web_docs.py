"""Open every web page in a browser, on PostgreSQL's documentation: light, dark and as narrow as a phone.

These are failures: a complaint of axe, a violation of the Content Security Policy, a request to another host, an
error in a script, a page wider than the screen, or a first load above 150 KB. The documentation is the Debian
package that the benchmark uses.
"""

import argparse
import asyncio
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import quote

from bench.failure import BenchFailure
from tests.postgres import mortal
from tests.server.web.showroom import browser
from tests.server.web.watching import Watched

from afresh.model.records import PageStatus
from soak.documentation import DocumentationSite, documentation
from soak.web_shots import LOOKS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FIRST_LOAD = 150_000
QUESTION = "logical replication slot"
FILTERS = ("language=en", "depth=1", "depth=2", "doubtful=1", "text=replication", "text=nothing-like-it")
WIDTH = "document.documentElement.scrollWidth"


@dataclass(frozen=True)
class Place:
    """A web page to open, and what to do there before the check."""

    name: str
    path: str
    act: Callable[["Page"], object] = lambda page: None
    status: int = 200


@dataclass(frozen=True)
class Sight:
    """The result of one check."""

    status: int
    milliseconds: float
    loaded: int
    wrong: tuple[str, ...]


def places(docs: DocumentationSite) -> list[Place]:
    """Return all web pages to check."""
    return [
        Place("overview", "/"),
        Place("changes", "/changes"),
        *_of_source(f"/sources/{docs.source}"),
        *(
            Place(f"{fate} page {tab}".rstrip(), f"/pages/{number}/{tab}".rstrip("/"))
            for fate, number in docs.pages.items()
            for tab in ("", "passages", "links", "attempts", "versions")
        ),
        *(Place(f"run {number}", f"/runs/{number}") for number in docs.runs),
        *(Place(f"run {number} attempts", f"/runs/{number}/attempts") for number in docs.runs),
        Place("search", "/search"),
        Place("search typed", "/search", _type),
        Place("search opened", "/", _search_and_open),
        Place("add", "/add"),
        Place("add preview", f"/add?target={quote(docs.site)}", _preview),
        Place("login", "/login"),
        Place("error", "/nothing-here", status=404),
    ]


def _of_source(base: str) -> list[Place]:
    filters = (*(f"status={each}" for each in PageStatus), *FILTERS)
    plain = (
        *("changes", "changes?kind=deleted", "links", "links?keyword=replication", "links?least=0.5"),
        *("runs", "charts"),
    )
    return [
        Place("source", base),
        Place("source more", base, lambda page: page.click("text=More")),
        *(Place(f"source {each}", f"{base}?{each}") for each in filters),
        *(Place(f"source {each}", f"{base}/{each}") for each in plain),
        Place("source differences", f"{base}/changes", _to_differences),
        Place("source differences split", f"{base}/changes?view=split", _to_differences),
        Place("source charts as tables", f"{base}/charts", _open_all),
        Place("source map", f"{base}/map", _map),
        Place("source map as a list", f"{base}/map", _map_as_a_list),
        Place("source copies", f"{base}/copies"),
        Place("source settings", f"{base}/settings"),
    ]


def _to_differences(page: "Page") -> None:
    """Scroll past the deletions, which are the newest changes, and open all parts that can be opened."""
    while page.locator(".diff").count() == 0:
        page.get_by_role("link", name="More", exact=True).click()
        page.wait_for_load_state("load")
    _open_all(page)


def _open_all(page: "Page") -> None:
    page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")


def _map(page: "Page") -> None:
    page.wait_for_selector("#map[data-ready]")


def _map_as_a_list(page: "Page") -> None:
    _map(page)
    _open_all(page)


def _preview(page: "Page") -> None:
    page.click("text=Preview")
    page.wait_for_selector(".preview")


def _type(page: "Page") -> None:
    page.keyboard.type(QUESTION)
    page.wait_for_selector(".hit mark")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".hit h2 a:focus")


def _search_and_open(page: "Page") -> None:
    page.keyboard.press("/")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit mark")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pages/*")


def main(arguments: Sequence[str]) -> int:
    """Crawl, serve and check; return 1 if a check failed."""
    parser = argparse.ArgumentParser("python -m soak web_docs", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="store a screenshot of each check here")
    stores = parser.add_mutually_exclusive_group()
    stores.add_argument("--store", help="URL of an empty store (default: a new SQLite file)")
    stores.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own")
    parser.add_argument("--only", default="", help="only checks whose name matches this pattern")
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="afresh-web-"))).resolve()
        url = given.store or f"sqlite:///{work}/store.db"
        if given.postgres:
            url = asyncio.run(stack.enter_context(mortal())[0].emptied())
        try:
            docs = stack.enter_context(documentation(url, work))
        except BenchFailure as failure:
            parser.error(str(failure))
        chromium = stack.enter_context(browser())
        return _look_at_all(chromium, docs, given.only, given.folder)


def _look_at_all(chromium: "Browser", docs: DocumentationSite, only: str, folder: Path | None) -> int:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    looked, wrong, slowest, largest = 0, 0, (0.0, ""), (0, "")
    for place in (each for each in places(docs) if re.search(only, each.name)):
        sights = {look: _sight(chromium, docs.url, place, look, folder) for look in LOOKS}
        took = median(sight.milliseconds for sight in sights.values())
        size = max(sight.loaded for sight in sights.values())
        found = [f"{look}: {each}" for look, sight in sights.items() for each in sight.wrong]
        status = "/".join(sorted({str(sight.status) for sight in sights.values()}))
        message = "; ".join(found) or "ok"
        print(f"{place.name:34} {status} {took:5.0f} ms {size / 1000:6.1f} KB  {message}", flush=True)
        looked, wrong = looked + 1, wrong + bool(found)
        slowest, largest = max(slowest, (took, place.name)), max(largest, (size, place.name))
    print(
        f"{looked} pages in {len(LOOKS)} looks, {wrong} wrong; slowest {slowest[0]:.0f} ms ({slowest[1]}), "
        f"largest {largest[0] / 1000:.1f} KB ({largest[1]})"
    )
    return int(wrong > 0 or looked == 0)


def _sight(chromium: "Browser", url: str, place: Place, look: str, folder: Path | None) -> Sight:
    """Check a web page in a new browser context."""
    from playwright.sync_api import Error

    context = chromium.new_context(base_url=url, **LOOKS[look])
    context.set_default_timeout(20_000)
    seen, wrong = Watched(context.new_page(), url), list[str]()
    status, took, loaded = 0, 0.0, 0
    try:
        answer = seen.page.goto(place.path)
        assert answer is not None
        timing = answer.request.timing
        status, took = answer.status, timing["responseStart"] - timing["requestStart"]
        place.act(seen.page)
        seen.page.wait_for_load_state("load")
        loaded = seen.loaded()
        wrong += [f"status {status}"] if status != place.status else []
        wrong += [f"first load {loaded} bytes"] if not 0 < loaded < FIRST_LOAD else []
        wrong += _flaws(seen)
        if folder is not None:
            name = re.sub(r"\W+", "-", f"{place.name} {look}")
            seen.page.screenshot(path=folder / f"{name}.png", full_page=True)
    except Error as error:
        wrong.append(str(error).splitlines()[0])
    finally:
        context.close()
    return Sight(status, took, loaded, tuple(wrong))


def _flaws(seen: Watched) -> list[str]:
    """Return what is wrong on a loaded page."""
    wide, room = int(seen.page.evaluate(WIDTH)), (seen.page.viewport_size or {"width": 0})["width"]
    return [
        *([f"{wide} wide on a screen of {room}"] if wide > room else []),
        *(f"axe {each}" for each in seen.flaws()),
        *seen.breaches(),
    ]
