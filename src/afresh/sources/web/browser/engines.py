"""Which engine shows a site: the first that shows its home page is kept."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from afresh.sources.web.browser.launch import MISSING, NoBrowser
from afresh.sources.web.browser.page import Lost, Shown
from afresh.sources.web.render_check import BARE, challenge_in, visible_text
from afresh.urls.canonical import origin_of

log = logging.getLogger(__name__)


class Renderer(Protocol):
    """Shows pages in a named engine; NoBrowser if it cannot be had."""

    async def render(self, engine: str, url: str, seconds: float) -> Shown | Lost: ...

    async def close(self) -> None: ...


class Engines:
    """Shows each site in the engine that suits it; nothing is started before a page needs it."""

    def __init__(
        self,
        open_renderer: Callable[[], Renderer],
        engines: Sequence[str],
        *,
        root: str,
        known: str | None = None,
        unsandboxed: str | None = None,
    ) -> None:
        self._open = open_renderer
        self._engines = engines
        self._root = root
        self._renderer: Renderer | None = None
        self._chosen: dict[str, str] = {}  # site to engine
        self._choosing = asyncio.Lock()
        self._absent: NoBrowser | None = None
        self._unsandboxed = unsandboxed  # what to say of Chromium
        self.used: list[str] = []
        self.notes: list[str] = []
        if known is not None and known in engines:
            self._chosen[origin_of(root)] = known

    @property
    def remembered(self) -> str | None:
        """The engine that suits the site of the source, for the next run."""
        return self._chosen.get(origin_of(self._root))

    async def show(self, url: str, seconds: float) -> Shown | Lost:
        """Show a page, having found out in which engine."""
        site = origin_of(url)
        if site not in self._chosen:
            async with self._choosing:
                if site not in self._chosen and (shown := await self._choose(site, url, seconds)):
                    return shown
        try:
            return await self._render(self._chosen[site], url, seconds)
        except NoBrowser:
            del self._chosen[site]  # one that was remembered, and is gone
            return await self.show(url, seconds)

    async def close(self) -> None:
        """End what was started."""
        renderer, self._renderer = self._renderer, None
        if renderer is not None:
            await renderer.close()

    async def _choose(self, site: str, url: str, seconds: float) -> Shown | Lost | None:
        """Keep an engine for a site; what it showed of the page, if that is the home page itself."""
        if self._absent is not None:
            raise self._absent
        home = self._root if origin_of(self._root) == site else url
        tried: dict[str, Shown | Lost] = {}
        lacking: list[str] = []
        for engine in self._engines:
            try:
                tried[engine] = await self._render(engine, home, seconds)
            except NoBrowser as error:
                lacking.append(str(error))
                continue
            if _is_content(tried[engine]):
                break
        if not tried:
            self._absent = NoBrowser("; ".join(dict.fromkeys(lacking)))
            raise self._absent
        good = [engine for engine, seen in tried.items() if _is_content(seen)]
        self._chosen[site] = (good or list(tried))[0]
        if not good and len(self._engines) > 1:
            more = f" ({'; '.join(lacking)})" if lacking else ""
            self.notes.append(f"no browser shows the content of {home}: {' and '.join(tried)} tried{more}")
        return tried[self._chosen[site]] if home == url else None

    async def _render(self, engine: str, url: str, seconds: float) -> Shown | Lost:
        if self._renderer is None:
            try:
                self._renderer = self._open()
            except ImportError as error:
                raise NoBrowser(MISSING) from error
        shown = await self._renderer.render(engine, url, seconds)
        if engine not in self.used:
            self.used.append(engine)
            if engine == "chromium" and self._unsandboxed:
                self.notes.append(self._unsandboxed)
                log.warning(self._unsandboxed)
        return shown


def _is_content(seen: Shown | Lost) -> bool:
    """Whether an engine showed something worth reading."""
    if isinstance(seen, Lost) or seen.status >= 400:
        return False
    text = visible_text(seen.html)
    return len(text) >= BARE and not (len(text) < 10 * BARE and challenge_in(seen.html))
