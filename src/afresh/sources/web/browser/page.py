"""One page in a browser: asked for, waited for until it rests, taken down as HTML."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from afresh.sources.web.browser.scripts import FINGERPRINT, SNAPSHOT

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Response

LOOK_SECONDS = 0.1  # between two looks at a page that may still change
QUIET_LOOKS = 4  # in a row that show the same
PATIENT_LOOKS = 20  # the same for a page that shows next to nothing, or a refusal that may be a challenge
BARE = 30  # characters that are more than next to nothing
_UNHEEDED = frozenset({"image", "media", "font", "websocket", "eventsource", "ping", "manifest", "other"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A page as a browser shows it."""

    url: str  # where it ended, after redirects and scripts
    html: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)  # of the document, names in lower case
    settled: bool = True
    barred: tuple[str, ...] = ()  # hosts that were not let through
    engine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A page that no browser could show."""

    reason: str
    late: bool = False
    hopeless: bool = False  # another try in this run would fare no better
    refused: bool = False  # it is we who may not look
    led_to: str | None = None  # the host to which it went away, where that shows nothing


class Watch:
    """Follows what happens to a page from outside: requests, answers, its end."""

    def __init__(self, page: "Page") -> None:
        self._page = page
        self._asked: set[Request] = set()
        self.answer: Response | None = None  # of the document that is shown
        self.aim = ""  # where the page as a whole was last about to go
        self.crashed = asyncio.Event()
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)
        page.on("response", self._answered)
        page.on("crash", lambda _: self.crashed.set())
        page.on("close", lambda _: self.crashed.set())
        page.on("popup", _close)  # dialogs are dismissed by themselves, downloads not begun

    @property
    def busy(self) -> bool:
        """Whether something is on its way that may change what is shown."""
        return bool(self._asked)

    @property
    def refused(self) -> bool:
        """Whether the site answered that we may not see the page, as a challenge does at first."""
        return self.answer is not None and self.answer.status >= 400

    def _begin(self, request: "Request") -> None:
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.aim = request.url
        if request.resource_type not in _UNHEEDED:
            self._asked.add(request)

    def _end(self, request: "Request") -> None:
        self._asked.discard(request)

    def _answered(self, response: "Response") -> None:
        request = response.request
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.answer = response
            self._asked.clear()  # what the document before asked for is no matter any more


async def show(page: "Page", url: str, *, settle_seconds: float, most: int) -> Shown | Lost:
    """Go to an address, wait until the page rests, take it down; the caller sees to time and memory."""
    from playwright.async_api import Error

    watch = Watch(page)
    looking = asyncio.ensure_future(_look(page, watch, url, settle_seconds, most))
    crashing = asyncio.ensure_future(watch.crashed.wait())
    try:
        await asyncio.wait({looking, crashing}, return_when=asyncio.FIRST_COMPLETED)
        if not looking.done():
            return Lost(reason="the page crashed the browser, or needed too much memory", hopeless=True)
        return await looking
    except Error as error:
        if watch.crashed.is_set():
            return Lost(reason="the page crashed the browser, or needed too much memory", hopeless=True)
        return Lost(reason=_words(error))
    finally:
        for task in (looking, crashing):
            task.cancel()
        await asyncio.gather(looking, crashing, return_exceptions=True)


async def _look(page: "Page", watch: Watch, url: str, settle_seconds: float, most: int) -> Shown | Lost:
    from playwright.async_api import Error

    first = await page.goto(url, wait_until="commit", timeout=0)
    watch.answer = watch.answer or first
    settled = await _settle(page, watch, settle_seconds)
    if not page.url.startswith(("http://", "https://")):
        return _led_astray(page.url, watch.aim)
    html: object = ""
    for _ in range(3):  # a page that goes elsewhere just now is taken down there
        with suppress(Error):
            html = await page.evaluate(SNAPSHOT, most)
            break
        await page.wait_for_load_state("domcontentloaded", timeout=0)
    answer = watch.answer
    if html is None:
        return Lost(reason=f"the rendered page is larger than {most // 1024 // 1024} MB", hopeless=True)
    if not isinstance(html, str) or not html or len(html) > most or answer is None:
        return Lost(reason="the page does not let itself be read", hopeless=True)
    headers = answer.headers
    return Shown(url=page.url, html=html, status=answer.status, headers=headers, settled=settled)


def _led_astray(url: str, aim: str) -> Lost:
    """A page whose script went where nothing is shown: the browser then shows a page of its own."""
    own = url.startswith(("chrome-error:", "about:neterror"))
    place = aim if own and aim else url
    reason = f"its script leads to {place[:200]}, which shows nothing"
    return Lost(reason=reason, hopeless=True, led_to=urlsplit(place).hostname)


async def _settle(page: "Page", watch: Watch, most: float) -> bool:
    """Wait until text and links stay the same and nothing is on its way; False if that never comes."""
    from playwright.async_api import Error

    loop = asyncio.get_running_loop()
    until, before, quiet = loop.time() + most, None, 0
    while loop.time() < until:
        now = None
        with suppress(Error):  # between two documents there is nothing to look at
            now = _looked_at(await page.evaluate(FINGERPRINT))
        quiet = quiet + 1 if now is not None and now == before and not watch.busy else 0
        before = now
        doubtful = now is None or now[1] < BARE or watch.refused
        if quiet >= (PATIENT_LOOKS if doubtful else QUIET_LOOKS):
            return True
        await asyncio.sleep(LOOK_SECONDS)
    return False


def _looked_at(said: object) -> tuple[str, int] | None:
    """The two numbers of a look; None if a page has tampered with what it is asked by."""
    seen, _, shown = said.partition(" ") if isinstance(said, str) and len(said) < 50 else ("", "", "")
    return (seen, int(shown)) if shown.isascii() and shown.isdigit() else None


async def _close(page: "Page") -> None:
    """Close a window that a page opened; that it is gone by then is no matter."""
    from playwright.async_api import Error

    with suppress(Error):
        await page.close()


def _words(error: Exception) -> str:
    """What the driver says of a page, in one line without its call log."""
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    said = said.removeprefix("Page.goto: ").removeprefix("Page.evaluate: ")
    if "Download is starting" in said or "ERR_ABORTED" in said:
        return "it is a download, which a browser is not asked for"
    return f"the browser could not show it: {said.partition(' at http')[0][:200]}"
