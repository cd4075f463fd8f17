"""Render in a browser those pages whose content HTTP alone does not provide.

| result of HTTP        | `crawl.render: auto`                                          | `always`           |
|-----------------------|---------------------------------------------------------------|--------------------|
| 304                   | not rendered                                                  | not rendered       |
| 200, HTML             | rendered if it is a shell for scripts or a browser check      | rendered           |
| 403, 406              | rendered while the site has refused all HTTP requests of this | rendered, with the |
|                       | run, until it refuses the browser three times in a row        | same limit         |
| 401, 403, 429, 503    | rendered if the response is a browser check                   | as with `auto`     |
| anything else         | not rendered                                                  | not rendered       |

A shell is HTML whose content is loaded by scripts. If it shows no content in a browser either, the request
has failed, because the data may be unreachable. The first engine that shows the home page of a site is used
for all pages of the site.

The validators of the HTTP response are stored only if the browser shows the same text and links as the plain
HTML. The HTML of a shell stays the same while its data changes, so a shell is rendered in every run.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from multidict import CIMultiDict, CIMultiDictProxy

from afresh.crawl.plausibility import PROBE
from afresh.dataclass import dataclass, field, replace
from afresh.model.fetch import Body, Failed, Fetched, Gone, Outcome, Refused, Request, Validators
from afresh.ports import Clock
from afresh.sources.registry import Refusal
from afresh.sources.web import answers, render_check
from afresh.sources.web.answers import same_site
from afresh.sources.web.browser.launch import MISSING, NoBrowser, RenderedPage, RenderFailure
from afresh.sources.web.render_check import HTML
from afresh.urls.canonical import canonical, origin_of

log = logging.getLogger(__name__)
MAX_REFUSED = 3  # after so many refusals in a row in a browser, pages of a site are no longer rendered


class Renderer(Protocol):
    """Renders pages in a named engine; raises NoBrowser if it is not available."""

    async def render(self, engine: str, url: str, seconds: float) -> RenderedPage | RenderFailure: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class RenderEngines:
    """Renders each site with an engine that works for it; starts no browser before a page needs one."""

    open_renderer: Callable[[], Renderer]
    engines: Sequence[str]
    root: str
    known: str | None = None  # the engine that worked for the root in the last run
    unsandboxed: str | None = None  # warning that Chromium runs without its sandbox
    used: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _renderer: Renderer | None = None
    _chosen: dict[str, str] = field(default_factory=dict)  # site to engine
    _choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _absent: NoBrowser | None = None

    def __post_init__(self) -> None:
        if self.known is not None and self.known in self.engines:
            self._chosen[origin_of(self.root)] = self.known

    @property
    def remembered(self) -> str | None:
        """Return the engine that works for the site of the source, so that the next run can use it."""
        return self._chosen.get(origin_of(self.root))

    async def show(self, url: str, seconds: float) -> RenderedPage | RenderFailure:
        """Render a page; for the first page of a site, choose an engine."""
        site = origin_of(url)
        if site not in self._chosen:
            async with self._choosing:
                if site not in self._chosen and (page := await self._choose(site, url, seconds)):
                    return page
        try:
            return await self._render(self._chosen[site], url, seconds)
        except NoBrowser:
            del self._chosen[site]  # the engine worked in an earlier run but is no longer installed
            return await self.show(url, seconds)

    async def close(self) -> None:
        renderer, self._renderer = self._renderer, None
        if renderer is not None:
            await renderer.close()

    async def _choose(self, site: str, url: str, seconds: float) -> RenderedPage | RenderFailure | None:
        """Choose an engine by rendering the home page of a site; return the result if `url` is the home page."""
        if self._absent is not None:
            raise self._absent
        home = self.root if origin_of(self.root) == site else url
        tried: dict[str, RenderedPage | RenderFailure] = {}
        lacking: list[str] = []
        for engine in self.engines:
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
        if not good and len(self.engines) > 1:
            more = f" ({'; '.join(lacking)})" if lacking else ""
            self.notes.append(f"no browser shows content on {home}; tried: {' and '.join(tried)}{more}")
        return tried[self._chosen[site]] if home == url else None

    async def _render(self, engine: str, url: str, seconds: float) -> RenderedPage | RenderFailure:
        if self._renderer is None:
            try:
                self._renderer = self.open_renderer()
            except ImportError as error:
                raise NoBrowser(MISSING) from error
        page = await self._renderer.render(engine, url, seconds)
        if engine not in self.used:
            self.used.append(engine)
            if engine == "chromium" and self.unsandboxed:
                self.notes.append(self.unsandboxed)
                log.warning(self.unsandboxed)
        return page


def _is_content(seen: RenderedPage | RenderFailure) -> bool:
    if isinstance(seen, RenderFailure) or seen.status >= 400:
        return False
    text = render_check.visible_text(seen.html)
    return len(text) >= render_check.BARE and not (
        len(text) < 10 * render_check.BARE and render_check.challenge_in(seen.html)
    )


@dataclass(slots=True)
class PageRenderer:
    """Renders in a browser the pages that need it (see the table at the top of this file)."""

    engines: RenderEngines
    clock: Clock
    always: bool = False
    total_seconds: float = 60.0  # time limit for HTTP and rendering together
    refusal: Refusal | None = None
    open_sites: set[str] = field(default_factory=set)  # sites that answered a plain HTTP request
    _rendered: int = 0
    _unrendered: int = 0  # pages that should have been rendered
    _missing: str | None = None  # how to install a browser, if none was available
    _refused: Counter[str] = field(default_factory=Counter)  # site → consecutive pages that refused the browser too

    async def render_if_needed(self, request: Request, seen: Fetched, began: float) -> Fetched:
        """Return the rendered page if its HTTP result `seen` shows that a browser is needed, else return `seen`.

        `began` is the time of the HTTP request, by the clock of the event loop.
        """
        if (why := self._why(seen, request.url)) is None:
            return seen
        seen = await self._show(request, seen, why, began + self.total_seconds - asyncio.get_running_loop().time())
        if isinstance(seen, Body) and seen.rendered and PROBE not in request.url:  # probes are not counted
            self._rendered += 1
        return seen

    async def close(self) -> None:
        await self.engines.close()

    @property
    def notes(self) -> Sequence[str]:
        notes = []
        if self._rendered:
            names = " and ".join(self.engines.used) or "a browser"
            notes.append(f"{_pages(self._rendered)} rendered in {names}")
        if self._unrendered:
            notes.append(f"{_pages(self._unrendered)} read without a browser and may lack content: {self._missing}")
        return (*notes, *self.engines.notes)

    def _why(self, seen: Fetched, url: str) -> str | None:
        if isinstance(seen, Body):
            return self._why_read(seen) if seen.media_type in HTML else None
        if not isinstance(seen, Refused | Failed) or seen.status_code is None:
            return None
        site = origin_of(url)
        refuses_page_only = site in self.open_sites and not (seen.challenge or self.always)
        if refuses_page_only or self._refused[site] >= MAX_REFUSED:
            return None
        return render_check.why_render_refused(seen.status_code, challenge=seen.challenge)

    def _why_read(self, body: Body) -> str | None:
        if self.always:
            return render_check.WANTED
        if (why := render_check.why_render(body.data.decode("latin-1"))) is None:
            self.open_sites.add(origin_of(body.url))
        return why or (render_check.STYLES if render_check.has_many_styles(body.data) else None)

    async def _show(self, request: Request, seen: Fetched, why: str, seconds: float) -> Fetched:
        url = seen.url if isinstance(seen, Body) else request.url  # the checked target of HTTP redirects
        try:
            page = await self.engines.show(url, max(1.0, seconds))
        except NoBrowser as error:
            return self._without_browser(request, seen, str(error))
        if isinstance(page, RenderFailure):
            if isinstance(seen, Refused | Failed):
                return replace(seen, reason=f"{seen.reason}; in a browser: {page.reason}")
            if page.refused:
                return Refused(reason=page.reason)
            outcome = Outcome.TIMEOUT if page.late else Outcome.FAILED
            return Failed(outcome=outcome, reason=page.reason, hopeless=page.hopeless)
        if isinstance(seen, Refused | Failed):
            return await self._if_admitted(url, seen, page, why)
        if page.status in answers.CONTENT:
            return await self._read(url, seen, page, why) if isinstance(seen, Body) else seen
        refusal = answers.refusal_of(page.status, _headers(page), self.clock())
        if isinstance(refusal, Gone):  # contradicts the HTTP request, which just found the page
            reason = f"{page.engine} ended at {page.url[:200]} with {page.status}"
            return Refused(reason=reason, status_code=page.status)
        return refusal

    def _without_browser(self, request: Request, seen: Fetched, fix: str) -> Fetched:
        """Return Failed if the page must be rendered, else `seen`, the HTTP result; `fix` says how to get a browser."""
        if self.always or request.media_type == render_check.RENDERED:
            return Failed(reason=f"not rendered: {fix}", hopeless=True)
        self._unrendered += 1
        self._missing = fix
        if isinstance(seen, Body):  # without validators: a 304 would prevent rendering in a later run
            return replace(seen, validators=Validators())
        return seen

    async def _if_admitted(self, url: str, seen: Refused | Failed, page: RenderedPage, why: str) -> Fetched:
        """Return the page if the site admits the browser, else the HTTP result; `why` is the reason for rendering."""
        site = origin_of(url)
        if page.status not in answers.CONTENT or render_check.why_render(page.html) == render_check.CHALLENGE:
            self._refused[site] += 1
            return replace(seen, reason=f"{seen.reason}, and in {page.engine} {page.status}")
        del self._refused[site]
        return await self._read(url, answers.body_of(url, b"", page.status, _headers(page), Validators()), page, why)

    async def _read(self, asked: str, body: Body, page: RenderedPage, why: str) -> Fetched:
        """Return the page, rendered because of `why`; Refused or Failed if its URL is forbidden or it shows nothing."""
        url = canonical(page.url, asked)
        if url != asked:
            target, why_not = url or page.url, None
            if self.refusal is not None:
                why_not = await self.refusal(target, asked)
            elif not same_site(asked, target):
                return Refused(reason=f"the page's script leads to {target[:200]}, which is outside this source")
            if why_not is not None:
                return replace(why_not, reason=f"the page's script leads to {target[:200]}: {why_not.reason}")
        if render_check.why_render(page.html) == render_check.CHALLENGE:
            reason = f"a browser check (such as a captcha) that {page.engine} did not pass"
            return Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=page.status)
        try:
            plain = body.data.decode(body.charset or "utf-8", "replace")
        except LookupError:
            plain = body.data.decode("utf-8", "replace")
        if why != render_check.TURNED_AWAY and render_check.why_render(plain) and render_check.shows_nothing(page.html):
            return Failed(reason=f"in {page.engine} {render_check.NOTHING}", hopeless=True)
        kept = render_check.why_render(plain) != render_check.ASKS and render_check.shows_the_same(plain, page.html)
        note = f"rendered in {page.engine}: {why}" + ("" if page.is_stable else "; the page kept changing")
        if page.barred:
            note += f"; blocked: {', '.join(page.barred)}"
        return replace(
            body,
            url=url or asked,
            data=page.html.encode("utf-8", "replace"),
            media_type="text/html",
            charset="utf-8",
            validators=body.validators if kept else Validators(),
            rendered=note,
        )


def _pages(number: int) -> str:
    return "1 page was" if number == 1 else f"{number:,} pages were"


def _headers(page: RenderedPage) -> answers.Headers:
    return CIMultiDictProxy(CIMultiDict(page.headers))
