"""The one HTTP client: every request afresh sends to a site goes through here, guarded and bounded."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from yarl import URL

from afresh.model.fetch import Failed, Fetched, Gone, NotModified, Outcome, Refused, Request, Validators
from afresh.ports import Clock
from afresh.sources.web import answers
from afresh.sources.web.client import AbstractResolver, aiohttp
from afresh.sources.web.codings import OFFERED, CodingError, TooLarge, coding_of, gather
from afresh.sources.web.deadlines import Deadline, Deadlines
from afresh.sources.web.guard import AddressPolicy, asked_host
from afresh.sources.web.pace import HostPace
from afresh.sources.web.redirects import Hop, barred, end_at, hop_of, outside, postponed, same_site
from afresh.sources.web.render_check import challenge_in
from afresh.sources.web.tls import trusted
from afresh.sources.web.trouble import RAISED, trouble
from afresh.urls.canonical import domain_of

_ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,*/*;q=0.5"
_MARKDOWN = {"Accept": "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,text/plain;q=0.8,*/*;q=0.5"}
_LARGEST_HEAD = 64 * 1024
_MOST_HEADERS = 100
_CHALLENGE_BYTES = 64 * 1024
Refusal = Callable[[str, str], Awaitable[Refused | Failed | None]]  # where to, and what was asked


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """The bounds of every request."""

    user_agent: str = "afresh/0.1"
    agent: str = "afresh"  # the product token that robots.txt and X-Robots-Tag may name
    total_seconds: float = 60.0
    connect_seconds: float = 10.0
    idle_seconds: float = 20.0
    max_body_bytes: int = 10 * 1024 * 1024
    max_redirects: int = 5
    connections_per_host: int = 16
    delay_seconds: float = 0.0  # between an answer of a host and the next request to it
    finds_challenges: bool = False  # whether a refusal comes with a page that lets browsers through
    policy: AddressPolicy = field(default_factory=AddressPolicy)


@dataclass(frozen=True, slots=True)
class _Terms:
    """How one look is to be taken."""

    limit: int
    validators: Validators | None = None
    issuer: str = ""  # validators go to the address that issued them, and to no other
    page: bool = True  # a page: a permanent move is an answer, other sites and media are refused
    cut: bool = False  # a body over the limit is cut there instead of failing
    markdown: bool = False  # Markdown is preferred


class _Tripped:
    """The server tripped over our conditions (412, or a 304 with a body): ask it again without them."""


class HttpFetcher:
    """Fetches over HTTP and HTTPS; every outcome is a value, every address is checked as it is connected."""

    def __init__(
        self,
        options: HttpOptions,
        *,
        clock: Clock = _utc_now,
        refusal: Refusal | None = None,
        resolver: AbstractResolver | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._clock = clock
        self._refusal = refusal  # why a redirect may not lead somewhere; without it, to no other site
        self._resolver = resolver
        self._sleep = sleep
        self._session: aiohttp.ClientSession | None = None
        self._deadlines = Deadlines(options.total_seconds, options.idle_seconds)
        self.pace = HostPace(options.delay_seconds, sleep=sleep, ticks=ticks)

    async def fetch(self, request: Request) -> Fetched:
        """Look at a page, conditionally when the request carries validators."""
        validators = request.validators or None
        issuer = (validators.url or request.url) if validators else ""
        terms = _Terms(self._options.max_body_bytes, validators, issuer, markdown=request.markdown)
        return await self._walk(request.url, terms)

    async def read(
        self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None
    ) -> Fetched:
        """Read a file that serves the crawl (robots.txt, a sitemap): any media type, wherever it moved to."""
        known = validators or None
        issuer = (known.url or url) if known else ""
        return await self._walk(url, _Terms(limit, known, issuer, page=False, cut=cut))

    async def close(self) -> None:
        """Close all connections."""
        self._deadlines.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _walk(self, asked: str, terms: _Terms) -> Fetched:
        """Ask, and follow redirects by hand until there is an answer or a deadline passes."""
        deadline = self._deadlines.begin()
        try:
            return await self._follow(asked, terms, deadline)
        except asyncio.CancelledError:
            late = self._deadlines.explain(deadline)
            if late is None:
                raise
            return Failed(outcome=Outcome.TIMEOUT, reason=str(late))
        finally:
            self._deadlines.end(deadline)

    async def _follow(self, asked: str, terms: _Terms, deadline: Deadline) -> Fetched:
        chain = [asked]
        while True:
            seen = await self._ask_in_turn(chain[-1], asked, terms, deadline)
            if isinstance(seen, _Tripped):
                terms = replace(terms, validators=None, issuer="")
                continue
            if not isinstance(seen, Hop):
                return seen
            end: Fetched | None = end_at(seen, chain, page=terms.page, most=self._options.max_redirects)
            if end := end or await self._bar(seen, asked, terms, deadline):
                return end
            chain.append(seen.to or "")

    async def _ask_in_turn(
        self, url: str, asked: str, terms: _Terms, deadline: Deadline
    ) -> Fetched | Hop | _Tripped:
        """One request when its host may be asked; what that takes is not the fault of the host."""
        target = _parsed(url)
        if target.scheme not in ("http", "https") or not target.raw_host or target.raw_user is not None:
            return Refused(outcome=Outcome.FAILED, reason="only plain http and https addresses are read")
        domain, turn = domain_of(url), None
        if self.pace.delay_of(domain):
            with self._deadlines.paused(deadline):
                turn = await self.pace.enter(domain)
        try:
            return await self._ask(target, url, asked, terms, deadline)
        finally:
            self.pace.leave(domain, turn)

    async def _ask(
        self, target: URL, url: str, asked: str, terms: _Terms, deadline: Deadline
    ) -> Fetched | Hop | _Tripped:
        """One request and the meaning of its answer."""
        host = target.raw_host or ""
        asked_host.set(host)
        headers = None
        if terms.validators is not None and terms.issuer == url:
            headers = answers.conditions(terms.validators, self._clock())
        try:
            session = self._session or self._open()
            tls = trusted() if target.scheme == "https" else True
            sent = {**_MARKDOWN, **(headers or {})} if terms.markdown else headers
            response = await session.get(target, headers=sent, allow_redirects=False, ssl=tls)
            self._deadlines.stir(deadline)
            try:
                if response.status == 304 and headers and terms.validators is not None:
                    return NotModified(validators=answers.renewed(terms.validators, response.headers))
                if response.status == 412 and headers:
                    return _Tripped()
                return await self._understand(response, url, asked, terms, deadline)
            finally:
                response.release()  # closes the connection unless the body has arrived to its end
        except RAISED as error:
            if headers and isinstance(error, aiohttp.ClientResponseError):
                return _Tripped()
            return trouble(error, host, self._options.connect_seconds)

    async def _understand(
        self, response: aiohttp.ClientResponse, url: str, asked: str, terms: _Terms, deadline: Deadline
    ) -> Fetched | Hop:
        status, headers = response.status, response.headers
        if sum(len(name) + len(value) for name, value in response.raw_headers) > _LARGEST_HEAD:
            return _failed("the head of the answer is larger than 64 KB", status)
        if status in answers.REDIRECTS:
            return hop_of(status, headers, url, self._clock())
        refusal = answers.refusal_of(status, headers, self._clock())
        if refusal is not None:
            looks = self._options.finds_challenges and terms.page and status in answers.CHALLENGING
            return await self._look_closer(refusal, response, terms, deadline) if looks else refusal
        media, _ = answers.media_of(headers)
        unread = answers.unread(media, response.content_length) if terms.page else None
        if unread:
            return _refused(unread, status)
        data = await self._read(response, terms, deadline)
        if not isinstance(data, bytes):
            return data
        validators = answers.validators_of(headers, url if url != asked else None)
        return answers.body_of(url, data, status, headers, validators, self._options.agent)

    async def _look_closer(
        self,
        refusal: Gone | Refused | Failed,
        response: aiohttp.ClientResponse,
        terms: _Terms,
        deadline: Deadline,
    ) -> Gone | Refused | Failed:
        """The refusal, with whether the page that came with it is a check for browsers."""
        page = await self._read(response, replace(terms, limit=_CHALLENGE_BYTES, cut=True), deadline)
        if isinstance(refusal, Gone) or not isinstance(page, bytes):
            return refusal
        return replace(refusal, challenge=challenge_in(page.decode("latin-1")))

    async def _read(
        self, response: aiohttp.ClientResponse, terms: _Terms, deadline: Deadline
    ) -> bytes | Failed | Refused:
        """The decoded body, counted after decoding; one that announces too much is not begun."""
        coded = response.headers.getall("Content-Encoding", [])
        coding = coding_of(coded)
        if coding is None:
            reason = f"content coding {answers.as_text(', '.join(coded))[:60]} is not supported"
            return _refused(reason, response.status)
        if not terms.cut and (response.content_length or 0) > terms.limit:
            return _too_large(terms.limit, response.status)
        try:
            stir = partial(self._deadlines.stir, deadline)
            data = await gather(response.content, coding, terms.limit, stir)
        except TooLarge:
            return _too_large(terms.limit, response.status)
        except CodingError as error:
            return _failed(str(error), response.status)
        if not terms.cut and len(data) > terms.limit:
            return _too_large(terms.limit, response.status)
        del data[terms.limit :]  # in place: a slice would be one more copy
        return bytes(data)

    async def _bar(self, hop: Hop, asked: str, terms: _Terms, deadline: Deadline) -> Refused | Failed | None:
        """Why a redirect is not followed, having waited as long as it asks; None to follow it."""
        if terms.page and self._refusal is not None:
            why = await self._refusal(hop.to or "", asked)
            if why is not None:
                return barred(hop, why)
        elif terms.page and not same_site(asked, hop.to or ""):
            return outside(hop)
        if hop.wait:
            if hop.wait >= self._options.idle_seconds:
                return postponed(hop)
            await self._sleep(hop.wait)
        self._deadlines.stir(deadline)
        return None

    def _open(self) -> aiohttp.ClientSession:
        options = self._options
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit_per_host=options.connections_per_host,
                socket_factory=options.policy.open_socket,
                resolver=self._resolver,
            ),
            headers={"User-Agent": options.user_agent, "Accept": _ACCEPT, "Accept-Encoding": OFFERED},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=options.connect_seconds),
            auto_decompress=False,
            trust_env=False,
            max_headers=_MOST_HEADERS,
            max_line_size=16 * 1024,
            max_field_size=16 * 1024,
        )
        return self._session


def _parsed(url: str) -> URL:
    """The address in parts; one that cannot be taken apart is the empty one."""
    try:
        return URL(url, encoded=True)
    except ValueError:
        return URL()


def _failed(reason: str, status: int) -> Failed:
    return Failed(outcome=Outcome.FAILED, reason=reason, status_code=status)


def _refused(reason: str, status: int) -> Refused:
    """What the next try within minutes would find again."""
    return Refused(outcome=Outcome.FAILED, reason=reason, status_code=status)


def _too_large(limit: int, status: int) -> Refused:
    most = f"{limit // 1024 // 1024} MB" if limit >= 1024 * 1024 else f"{limit // 1024} KB"
    return _refused(f"body larger than {most}", status)
