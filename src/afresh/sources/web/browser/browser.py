"""Manage the browsers of one run: start them when first needed, and close them with all their processes."""

import asyncio
import secrets
from contextlib import suppress

from playwright.async_api import Browser, BrowserContext, Error, Route
from psutil import Process

from afresh.dataclass import replace
from afresh.sources.web.browser.driver import Driver, end, family, first_process, heaviest_beyond
from afresh.sources.web.browser.launch import BrowserOptions, NoBrowser, RenderedPage, RenderFailure, launch
from afresh.sources.web.browser.page import MARK_HIDDEN, PREPARE, show
from afresh.sources.web.browser.proxy import BrowserProxy
from afresh.urls.canonical import origin_of

_BLOCKED = frozenset({"image", "media", "font"})
_MEDIA = [
    f"*.{kind}{rest}"
    for kind in ("mp4", "webm", "m3u8", "mp3", "ogg", "ogv", "wav", "m4a", "mov", "avi")
    for rest in ("", "?*")
]
_WATCH_SECONDS = 0.5
_CLOSE_SECONDS = 3.0


class BrowserSlot:
    """Renders one page at a time, in a browser context with its own proxy."""

    def __init__(self, running: "RunningBrowser") -> None:
        self._running = running
        self._context: BrowserContext | None = None
        self._proxy = BrowserProxy(running.options.policy, connect_seconds=running.options.network.connect_seconds)
        self._site = ""

    async def show(self, url: str) -> RenderedPage | RenderFailure:
        """Render a page; keep cookies and cache as long as the pages in this slot are of one site."""
        options, context = self._running.options, await self._at(origin_of(url))
        stats = self._proxy.admit(options.max_page_bytes)
        page = await context.new_page()
        if self._running.engine == "chromium":
            session = await context.new_cdp_session(page)
            await session.send("Network.enable")
            await session.send("Network.setBlockedURLs", {"urls": _MEDIA})
        seen = await show(page, url, settle_seconds=options.settle_seconds, max_chars=options.network.max_body_bytes)
        self._proxy.hang_up()
        async with asyncio.timeout(_CLOSE_SECONDS):
            await page.close()
        if stats.spent:
            most = options.max_page_bytes // 1024 // 1024
            return RenderFailure(reason=f"the page and its files are larger than {most} MB", hopeless=True)
        barred = tuple(f"{host} is {kind}" for host, kind in stats.barred.items())
        if isinstance(seen, RenderFailure) and seen.led_to in stats.barred:
            reason = f"the page's script leads to {seen.led_to}, which is blocked (see network.allow)"
            return replace(seen, reason=reason, refused=True, hopeless=True)
        if isinstance(seen, RenderFailure):
            why = f" (blocked: {', '.join(barred)})" if barred else ""
            return replace(seen, reason=seen.reason + why, hopeless=seen.hopeless or bool(barred))
        return replace(seen, barred=barred, engine=self._running.engine)

    async def close(self) -> None:
        context, self._context = self._context, None
        await self._proxy.close()
        if context is not None:
            with suppress(Error):
                await context.close()

    async def _at(self, site: str) -> BrowserContext:
        if self._context is not None and self._site == site:
            return self._context
        await self.close()
        await self._proxy.open()
        running, self._site = self._running, site
        self._context = await running.browser.new_context(
            proxy={"server": self._proxy.address},
            user_agent=running.user_agent,
            viewport={"width": 1280, "height": 1024},
            locale="en-US",
            timezone_id="UTC",
            reduced_motion="reduce",
            color_scheme="light",
            accept_downloads=False,
            service_workers="block",
            permissions=[],
        )
        await self._context.add_init_script(PREPARE)
        await self._context.add_init_script(MARK_HIDDEN)
        if running.engine != "chromium":  # Chromium has flags for this, which do not disable its cache
            await self._context.route("**/*", _without_pictures)
        return self._context


async def _without_pictures(route: Route) -> None:
    if route.request.resource_type in _BLOCKED:
        await route.abort()
    else:
        await route.continue_()


class RunningBrowser:
    def __init__(self, engine: str, options: BrowserOptions, browser: Browser, token: str) -> None:
        self.engine = engine
        self.options = options
        self.browser = browser
        self._token = token
        self._first: Process | None = None
        self.user_agent = ""
        self.rendered = 0
        self.spent = False  # True: the next page is rendered in a new browser
        self._slots: list[BrowserSlot] = []
        self._free: list[BrowserSlot] = []
        self.busy = 0  # number of pages that are being rendered
        self._guarding: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Read the user agent of the browser, and start a task that limits the memory of the browser."""
        if self.engine == "chromium":
            session = await self.browser.new_browser_cdp_session()
            own = (await session.send("Browser.getVersion"))["userAgent"]
        else:
            page = await self.browser.new_page()
            own = await page.evaluate("navigator.userAgent")
            await page.close()
        self.user_agent = f"{own} {self.options.network.agent.split(' ')[0]}"
        self._first = first_process(self._token)
        self._guarding = asyncio.ensure_future(self._guard())

    async def show(self, url: str, seconds: float) -> RenderedPage | RenderFailure:
        """Render a page in the next free slot, within a time limit."""
        if not self._free:
            self._slots.append(BrowserSlot(self))
            self._free.append(self._slots[-1])
        slot = self._free.pop()
        self.busy += 1
        self.rendered += 1
        try:
            async with asyncio.timeout(seconds):
                seen = await slot.show(url)
        except BaseException as error:
            self.spent = True  # scripts of the page may still run in it
            if isinstance(error, TimeoutError):
                return RenderFailure(reason=f"not rendered within {seconds:g} s", late=True, hopeless=True)
            raise
        finally:
            self.busy -= 1
        self._free.append(slot)
        return seen

    async def close(self) -> None:
        """Close the browser; kill its processes if that fails."""
        if self._guarding is not None:
            self._guarding.cancel()
        processes = family(self._first)
        if self.spent:
            end(processes)
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.browser.close()
        end(processes)
        for slot in self._slots:
            await slot.close()

    async def _guard(self) -> None:
        """Kill the page process with the most memory whenever the browser exceeds its limit."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if self.busy and (guilty := heaviest_beyond(self.options.memory_mb, self._first)):
                end([guilty])


class Browsers:
    """Renders pages with any engine; replaces a browser after many pages or an error."""

    def __init__(self, options: BrowserOptions) -> None:
        self._options = options
        self._turns = asyncio.Semaphore(options.pages)
        self._starting = asyncio.Lock()
        self._driver = Driver()
        self._running: dict[str, RunningBrowser] = {}
        self._leaving: list[RunningBrowser] = []
        self._absent: dict[str, str] = {}
        self._closed_proxy = BrowserProxy(options.policy)  # blocks requests that the browser makes outside of pages

    async def render(self, engine: str, url: str, seconds: float) -> RenderedPage | RenderFailure:
        """Render a page; raise NoBrowser if the engine is not available."""
        async with self._turns:
            running = await self._for(engine)
            try:
                return await running.show(url, min(seconds, self._options.timeout_seconds))
            except (Error, TimeoutError) as error:
                message = (str(error).splitlines() or ["it does not respond"])[0]
                return RenderFailure(reason=f"the browser crashed: {message[:200]}")
            finally:
                if running.spent and self._running.get(engine) is running:  # close it now: the next page may take hours
                    self._leaving.append(self._running.pop(engine))
                await self._close_replaced()

    async def close(self) -> None:
        for running in (*self._running.values(), *self._leaving):
            await running.close()
        self._running.clear()
        self._leaving.clear()
        await self._closed_proxy.close()
        await self._driver.close()

    async def _for(self, engine: str) -> RunningBrowser:
        async with self._starting:
            if (running := self._running.get(engine)) is not None:
                worn = running.spent or running.rendered >= self._options.recycle_pages
                if not worn and running.browser.is_connected() and self._driver.is_up:
                    return running
                self._leaving.append(self._running.pop(engine))
                await self._close_replaced()
            if engine in self._absent:
                raise NoBrowser(self._absent[engine])
            while True:
                try:
                    running = self._running[engine] = await self._start(engine)
                except NoBrowser as error:
                    if self._driver.is_up or not self._driver.may_start:
                        self._absent[engine] = str(error)
                        raise
                else:  # the driver may die when the browser starts: try again a few times
                    return running

    async def _close_replaced(self) -> None:
        for running in [each for each in self._leaving if not each.busy]:
            self._leaving.remove(running)
            await running.close()

    async def _start(self, engine: str) -> RunningBrowser:
        playwright = await self._driver.playwright()
        await self._closed_proxy.open()
        token = secrets.token_hex(8)
        address, environment = self._closed_proxy.address, self._driver.environment
        browser = await launch(playwright, engine, self._options, token, address, environment)
        running = RunningBrowser(engine, self._options, browser, token)
        try:
            await running.prepare()
        except Error as error:
            running.spent = True
            await running.close()
            raise NoBrowser(f"{engine} crashed while starting") from error
        return running
