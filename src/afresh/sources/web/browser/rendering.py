"""Shows pages in a browser that cannot be read otherwise: a fetcher around the one that speaks HTTP.

| the HTTP look brought | `auto`                                                      | `always` |
|-----------------------|-------------------------------------------------------------|----------|
| 304                   | done                                                        | done     |
| 200, HTML             | shown if it is a shell for scripts or a check for browsers  | shown    |
| 403, 406              | shown if the site let a plain client read nothing so far in | shown,   |
|                       | this run, until three in a row are refused there too        | until …  |
| 401, 403, 429, 503    | shown if a check for browsers came with it                  | the same |
| anything else         | done                                                        | done     |

A shell that shows nothing in a browser either is a failed look, however often that is seen: the data behind
it may be out of reach.

The validators of the HTTP answer are kept only where the browser shows the same text and links as the plain
page: a shell stays the same while the data behind it changes, so a shell is shown anew with every look.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from multidict import CIMultiDict, CIMultiDictProxy

from afresh.crawl.plausibility import PROBE
from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Outcome, Refused, Request, Validators
from afresh.ports import Clock, Fetcher
from afresh.sources.web import answers
from afresh.sources.web.browser.engines import Engines
from afresh.sources.web.browser.launch import NoBrowser
from afresh.sources.web.browser.page import Lost, Shown
from afresh.sources.web.redirects import same_site
from afresh.sources.web.render_check import (
    ASKS,
    CHALLENGE,
    NOTHING,
    RENDERED,
    STYLES,
    TURNED_AWAY,
    WANTED,
    has_many_styles,
    is_readable,
    shows_nothing,
    shows_the_same,
    why_render,
    why_render_refused,
)
from afresh.urls.canonical import canonical, origin_of

HTML = frozenset({"text/html", "application/xhtml+xml"})
MOST_REFUSED = 3  # pages of a site in a row that were refused to the browser too
_OUTSIDE = "which is outside this source"
Refusal = Callable[[str, str], Awaitable[Refused | Failed | None]]  # where to, and what was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderingOptions:
    """What is shown in a browser, and how long a look may take in all."""

    always: bool = False
    total_seconds: float = 60.0
    agent: str = "afresh"


@dataclass(slots=True)
class _Tale:
    """What happened in a run, for its report."""

    rendered: int = 0
    unshown: int = 0  # for want of a browser
    missing: str | None = None  # how to get one
    refused: dict[str, int] = field(default_factory=dict)  # by site, in a row
    open_sites: set[str] = field(default_factory=set)  # that let plain clients read


class RenderingFetcher:
    """Looks by HTTP, and shows in a browser what that look could not bring."""

    def __init__(
        self,
        http: Fetcher,
        engines: Engines,
        options: RenderingOptions,
        *,
        clock: Clock,
        refusal: Refusal | None = None,
    ) -> None:
        self._http = http
        self._engines = engines
        self._options = options
        self._clock = clock
        self._refusal = refusal
        self._tale = _Tale()

    async def fetch(self, request: Request) -> Fetched:
        """One look; a page that did not change is never shown."""
        began = _now()
        seen = await self._http.fetch(request)
        why = self._why(seen, request.url)
        if why is None:
            return seen
        seen = await self._show(request, seen, why, self._options.total_seconds - (_now() - began))
        if isinstance(seen, Body) and seen.rendered and PROBE not in request.url:  # a probe is no page
            self._tale.rendered += 1
        return seen

    async def close(self) -> None:
        """End the browser and close all connections."""
        try:
            await self._engines.close()
        finally:
            await self._http.close()

    @property
    def notes(self) -> Sequence[str]:
        """What a reader of the report should know."""
        tale, notes = self._tale, []
        if tale.rendered:
            names = " and ".join(self._engines.used) or "a browser"
            notes.append(f"{_pages(tale.rendered)} shown in {names} before being read")
        if tale.unshown:
            notes.append(
                f"{_pages(tale.unshown)} looked at without a browser, which may show more: {tale.missing}"
            )
        return (*notes, *self._engines.notes)

    def _why(self, seen: Fetched, url: str) -> str | None:
        """Why a look has to be taken again by a browser; None if it stands."""
        if isinstance(seen, NotModified):
            self._tale.open_sites.add(origin_of(url))
            return None
        if isinstance(seen, Body):
            return self._why_read(seen)
        if not isinstance(seen, Refused | Failed) or seen.status_code is None:
            return None
        site = origin_of(url)
        if self._tale.refused.get(site, 0) >= MOST_REFUSED:
            return None
        if site in self._tale.open_sites and not (seen.challenge or self._options.always):
            return None  # it is this page that is refused, and not plain clients
        return why_render_refused(seen.status_code, challenge=seen.challenge)

    def _why_read(self, body: Body) -> str | None:
        if body.media_type not in HTML:
            return None
        if self._options.always:
            return WANTED
        why = None if is_readable(body.data) else why_render(body.data.decode("latin-1"))
        if why is None:
            self._tale.open_sites.add(origin_of(body.url))
        return why or (STYLES if has_many_styles(body.data) else None)

    async def _show(self, request: Request, seen: Fetched, why: str, seconds: float) -> Fetched:
        url = seen.url if isinstance(seen, Body) else request.url  # where HTTP redirects led, by their rules
        try:
            shown = await self._engines.show(url, max(1.0, seconds))
        except NoBrowser as error:
            return self._without(request, seen, str(error))
        if isinstance(shown, Lost):
            return self._lost(seen, shown)
        if isinstance(seen, Refused | Failed):
            return await self._let_in(url, seen, shown, why)
        refusal = answers.refusal_of(shown.status, _headers(shown), self._clock())
        if isinstance(refusal, Gone):  # the site has the page: it told us so a moment ago
            reason = f"{shown.engine} ended at {shown.url[:200]} with {shown.status}"
            return Refused(outcome=Outcome.FAILED, reason=reason, status_code=shown.status)
        if refusal is not None or not isinstance(seen, Body):
            return refusal or seen
        return await self._read(url, seen, shown, why)

    def _without(self, request: Request, seen: Fetched, fix: str) -> Fetched:
        """What stands where no browser can be had: never a shell in the place of what a browser showed."""
        if self._options.always or request.media_type == RENDERED:
            return Failed(outcome=Outcome.FAILED, reason=f"not shown in a browser: {fix}", hopeless=True)
        self._tale.unshown += 1
        self._tale.missing = fix
        if isinstance(seen, Body):  # else a 304 would hide it from the browser that is there next time
            return replace(seen, validators=Validators())
        return seen

    def _lost(self, seen: Fetched, lost: Lost) -> Fetched:
        if isinstance(seen, Refused | Failed):
            return replace(seen, reason=f"{seen.reason}; in a browser: {lost.reason}")
        if lost.refused:
            return Refused(outcome=Outcome.FAILED, reason=lost.reason)
        outcome = Outcome.TIMEOUT if lost.late else Outcome.FAILED
        return Failed(outcome=outcome, reason=lost.reason, hopeless=lost.hopeless)

    async def _let_in(self, url: str, seen: Refused | Failed, shown: Shown, why: str) -> Fetched:
        """What a browser was shown where a plain client was refused."""
        site = origin_of(url)
        if shown.status not in answers.CONTENT or why_render(shown.html) == CHALLENGE:
            self._tale.refused[site] = self._tale.refused.get(site, 0) + 1
            return replace(seen, reason=f"{seen.reason}, and in {shown.engine} {shown.status}")
        self._tale.refused.pop(site, None)
        body = answers.body_of(url, b"", shown.status, _headers(shown), Validators(), self._options.agent)
        return await self._read(url, body, shown, why)

    async def _read(self, asked: str, body: Body, shown: Shown, why: str) -> Fetched:
        """The page as it was shown, if it ended where it may."""
        url = canonical(shown.url, asked)
        if url != asked and (barred := await self._barred(asked, url or shown.url)):
            return barred
        if why_render(shown.html) == CHALLENGE:
            reason = f"a check for browsers, which {shown.engine} did not pass"
            return Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=shown.status)
        plain = _text(body)
        if why != TURNED_AWAY and why_render(plain) and shows_nothing(shown.html):
            return Failed(outcome=Outcome.FAILED, reason=f"in {shown.engine} {NOTHING}", hopeless=True)
        kept = why_render(plain) != ASKS and shows_the_same(plain, shown.html)
        return replace(
            body,
            url=url or asked,
            data=shown.html.encode("utf-8", "replace"),
            media_type="text/html",
            charset="utf-8",
            validators=body.validators if kept else Validators(),
            rendered=_told(shown, why),
        )

    async def _barred(self, asked: str, url: str) -> Refused | Failed | None:
        """Why a page is not taken from where its scripts led; None if it may be."""
        if self._refusal is None:
            if same_site(asked, url):
                return None
            return Refused(outcome=Outcome.FAILED, reason=f"its script leads to {url[:200]}, {_OUTSIDE}")
        why = await self._refusal(url, asked)
        return replace(why, reason=f"its script leads to {url[:200]}: {why.reason}") if why else None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _pages(number: int) -> str:
    return "1 page was" if number == 1 else f"{number:,} pages were"


def _headers(shown: Shown) -> answers.Headers:
    return CIMultiDictProxy(CIMultiDict(shown.headers))


def _text(body: Body) -> str:
    try:
        return body.data.decode(body.charset or "utf-8", "replace")
    except LookupError:
        return body.data.decode("utf-8", "replace")


def _told(shown: Shown, why: str) -> str:
    """How a page was read, for its history."""
    told = f"shown in {shown.engine}: {why}"
    if not shown.settled:
        told += "; it went on changing"
    if shown.barred:
        told += f"; not let through: {', '.join(shown.barred)}"
    return told
