"""Render one page in a browser: load it, wait until it no longer changes, and return its HTML."""

import asyncio
from contextlib import suppress
from importlib.resources import files
from urllib.parse import urlsplit

from playwright.async_api import Error, Page, Request, Response

from afresh.sources.web.browser.launch import RenderedPage, RenderFailure


def _script(name: str) -> str:
    return files("afresh.sources.web.browser").joinpath("scripts", name).read_text("utf-8").strip()


# Disables WebRTC, notifications, windows and printing, and gives access to closed shadow roots.
PREPARE = _script("prepare.js")
# Marks hidden elements with an attribute, and hidden text beside visible text with a span. The value
# "switched" means that a reader may be able to open the element. The content of a closed <details> and MathML
# formulas are not marked. The script first saves the functions it needs, as scripts of the page could replace them.
MARK_HIDDEN = _script("mark_hidden.js")
# Returns two numbers in a string: a hash of the visible text and link targets, and the length of the text.
# The script calls getters of the prototype, because a form named "links" replaces document.links.
FINGERPRINT = _script("fingerprint.js")
# Returns the document as HTML, with the content of web components in place; null if it is too large.
SNAPSHOT = _script("snapshot.js")

CHECK_SECONDS = 0.1  # time between two checks whether the page still changes
QUIET_CHECKS = 4  # number of equal checks in a row after which a page is complete
DOUBTFUL_CHECKS = 20  # the same for a page that is almost empty or may be a browser check
BARE = 30  # a page with fewer characters counts as almost empty
_UNHEEDED = frozenset({"image", "media", "font", "websocket", "eventsource", "ping", "manifest", "other"})


class PageWatch:
    def __init__(self, page: Page) -> None:
        self._page = page
        self.asked: set[Request] = set()  # pending requests that may change the page
        self.answer: Response | None = None  # the response of the current document
        self.aim = ""  # the URL of the last navigation
        self.crashed = asyncio.Event()
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)
        page.on("response", self._answered)
        page.on("crash", lambda _: self.crashed.set())
        page.on("close", lambda _: self.crashed.set())
        page.on("popup", _close)  # dialogs and downloads need no handler, because Playwright refuses both

    def _begin(self, request: Request) -> None:
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.aim = request.url
        if request.resource_type not in _UNHEEDED:
            self.asked.add(request)

    def _end(self, request: Request) -> None:
        self.asked.discard(request)

    def _answered(self, response: Response) -> None:
        request = response.request
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.answer = response
            self.asked.clear()  # these requests belong to the previous document


async def show(page: Page, url: str, *, settle_seconds: float, max_chars: int) -> RenderedPage | RenderFailure:
    """Load a URL, wait until the page no longer changes (at most `settle_seconds`), and return it.

    A page with more than `max_chars` characters of HTML is a failure. The caller limits time and memory.
    """
    watch = PageWatch(page)
    rendering = asyncio.ensure_future(_render(page, watch, url, settle_seconds, max_chars))
    crashing = asyncio.ensure_future(watch.crashed.wait())
    try:
        await asyncio.wait({rendering, crashing}, return_when=asyncio.FIRST_COMPLETED)
        if rendering.done():
            return await rendering
    except Error as error:
        if not watch.crashed.is_set():
            return RenderFailure(reason=_explain(error))
    finally:
        for task in (rendering, crashing):
            task.cancel()
        await asyncio.gather(rendering, crashing, return_exceptions=True)
    return RenderFailure(reason="the page crashed the browser, or needed too much memory", hopeless=True)


async def _render(
    page: Page, watch: PageWatch, url: str, settle_seconds: float, max_chars: int
) -> RenderedPage | RenderFailure:
    first = await page.goto(url, wait_until="commit", timeout=0)
    watch.answer = watch.answer or first
    is_stable = await _settle(page, watch, settle_seconds)
    if not page.url.startswith(("http://", "https://")):
        own = page.url.startswith(("chrome-error:", "about:neterror"))  # the browser's own error page
        place = watch.aim if own and watch.aim else page.url
        reason = f"the page's script leads to {place[:200]}, which could not be loaded"
        return RenderFailure(reason=reason, hopeless=True, led_to=urlsplit(place).hostname)
    html: object = ""
    for _ in range(3):  # try again if the page navigates meanwhile
        with suppress(Error):
            html = await page.evaluate(SNAPSHOT, max_chars)
            break
        await page.wait_for_load_state("domcontentloaded", timeout=0)
    answer = watch.answer
    if html is None:
        return RenderFailure(reason=f"the rendered page is larger than {max_chars // 1024 // 1024} MB", hopeless=True)
    if not isinstance(html, str) or not html or len(html) > max_chars or answer is None:
        return RenderFailure(reason="the rendered page cannot be read", hopeless=True)
    return RenderedPage(url=page.url, html=html, status=answer.status, headers=answer.headers, is_stable=is_stable)


async def _settle(page: Page, watch: PageWatch, most: float) -> bool:
    """Wait until text and links stay the same and no request is pending; return False if time runs out."""
    loop = asyncio.get_running_loop()
    until, before, quiet = loop.time() + most, None, 0
    while loop.time() < until:
        now = None
        with suppress(Error):  # evaluation fails during a navigation
            now = _parse_fingerprint(await page.evaluate(FINGERPRINT))
        quiet = quiet + 1 if now is not None and now == before and not watch.asked else 0
        before = now
        refused = watch.answer is not None and watch.answer.status >= 400  # may be a browser check
        doubtful = now is None or now[1] < BARE or refused
        if quiet >= (DOUBTFUL_CHECKS if doubtful else QUIET_CHECKS):
            return True
        await asyncio.sleep(CHECK_SECONDS)
    return False


def _parse_fingerprint(text: object) -> tuple[str, int] | None:
    """Parse the fingerprint of a page, a hash and a length; return None if the page has manipulated it."""
    digest, _, length = text.partition(" ") if isinstance(text, str) and len(text) < 50 else ("", "", "")
    return (digest, int(length)) if length.isascii() and length.isdigit() else None


async def _close(page: Page) -> None:
    """Close a window that a page opened; ignore the error if it is closed already."""
    with suppress(Error):
        await page.close()


def _explain(error: Exception) -> str:
    """Return the driver's error message in one line, without its call log."""
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    message = message.removeprefix("Page.goto: ").removeprefix("Page.evaluate: ")
    if "Download is starting" in message or "ERR_ABORTED" in message:
        return "the URL is a download, which is not opened in a browser"
    return f"the browser could not render it: {message.partition(' at http')[0][:200]}"
