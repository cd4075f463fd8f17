"""Fetch pages over HTTP: check every IP address, limit size and time, and keep the delay between requests.

GET requests are sent with the connections, protocol and parser of aiohttp, but without its session. The session
prepares cookies, proxies, redirects and traces for every request, of which none is used here. That takes as much
CPU time as everything else that aiohttp does for an unchanged page.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from multidict import CIMultiDictProxy
from yarl import URL

from afresh.config import Config
from afresh.config.sources import NetworkSettings
from afresh.dataclass import asdict, dataclass, field, replace
from afresh.model.fetch import Failed, Fetched, NotModified, Outcome, Refused, Request, Validators
from afresh.ports import Clock
from afresh.sources.registry import Refusal
from afresh.sources.web import answers, client
from afresh.sources.web.answers import Deadline, Redirect, end_at, same_site
from afresh.sources.web.client import AbstractResolver, HttpProcessingError, NotHttp, aiohttp, trusted
from afresh.sources.web.guard import AddressPolicy, asked_host
from afresh.sources.web.http_dates import parse_retry_after
from afresh.sources.web.render_check import challenge_in
from afresh.urls.canonical import canonical, domain_of

MAX_ORIGINS = 1_000  # that are remembered
_MAX_HEADERS = 100
_MAX_LINE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Origin:
    url: str  # scheme, host and port
    host: str
    domain: str
    opening: aiohttp.ClientRequest  # names the connections to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The head of a response, and its body as a stream; call `release` at the end."""

    status: int
    headers: CIMultiDictProxy[str]
    raw_headers: Sequence[tuple[bytes, bytes]]
    content: aiohttp.StreamReader
    release: Callable[[], None]  # closes the connection unless the body was received to its end


class Connections:
    """Keeps connections for the next requests; `headers` are sent with each."""

    def __init__(self, connector: aiohttp.TCPConnector, headers: dict[str, str], connect_seconds: float) -> None:
        self._connector = connector
        self._lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self.origin = lru_cache(MAX_ORIGINS)(_origin_at)

    async def close(self) -> None:
        await self._connector.close()

    async def get(self, origin: Origin, url: str, headers: dict[str, str]) -> Response:
        """Send a GET request and return the response; repeat it once if the server has closed the kept connection."""
        target = url[len(origin.url) :].partition("#")[0] or "/"
        if " " in target or not "".join((target, *headers.values())).isprintable():  # a line break would add a header
            raise aiohttp.InvalidURL(url)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"GET {target} HTTP/1.1\r\nHost: {origin.domain}\r\n{self._lines}{lines}\r\n".encode()
        try:
            return await self._send(origin, head)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            return await self._send(origin, head)

    async def _send(self, origin: Origin, head: bytes) -> Response:
        connection = await self._connector.connect(origin.opening, [], self._timeout)
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            connection.close()
            raise aiohttp.ServerDisconnectedError
        try:
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                max_line_size=_MAX_LINE_BYTES,
                max_field_size=_MAX_LINE_BYTES,
                max_headers=_MAX_HEADERS,
            )
            transport.write(head)
            message, content = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:  # it only announces the response
                message, content = await protocol.read()
        except BaseException as error:
            connection.close()
            if isinstance(error, HttpProcessingError):
                raise NotHttp from error
            raise
        return Response(
            status=message.code,
            headers=message.headers,
            raw_headers=message.raw_headers,
            content=content,
            release=connection.release,
        )


def _origin_at(place: str) -> Origin | None:
    """Return the server at `scheme://host:port`; None for another scheme than http or https, or with a user name."""
    try:
        url = URL(f"{place}/", encoded=True)
    except ValueError:
        return None
    is_server = url.raw_host and url.raw_user is None and url.raw_path_qs == "/" and not url.raw_fragment
    if url.scheme not in ("http", "https") or not is_server:
        return None
    tls = trusted() if url.scheme == "https" else True
    return Origin(place, url.raw_host or "", domain_of(place), aiohttp.ClientRequest("GET", url, ssl=tls))


Sleep = Callable[[float], Awaitable[None]]


class HostPacing:
    """Delays requests per host: one at a time, each some seconds after the last response."""

    def __init__(self, delay_seconds: float, *, sleep: Sleep, ticks: Callable[[], float]) -> None:
        self.min_delay = delay_seconds
        self._sleep = sleep
        self.ticks = ticks
        self.delays: dict[str, float] = {}  # seconds between a response of a host and the next request to it
        self.answered: dict[str, float] = {}  # when a host responded last: its delay may be learned later
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def learn(self, domain: str, delay_seconds: float) -> None:
        self.delays[domain] = max(self.min_delay, delay_seconds)

    async def enter(self, domain: str) -> asyncio.Lock:
        """Wait until a request to a host with a delay is permitted; release the returned lock after the response."""
        turn = self._turns[domain]
        await turn.acquire()
        try:
            while domain in self.answered:
                due_at = self.answered[domain] + self.delays.get(domain, self.min_delay)
                if (wait := due_at - self.ticks()) <= 0:
                    break
                await self._sleep(wait)
        except BaseException:
            turn.release()
            raise
        return turn


_ANY_PAGE = {"Accept": "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,*/*;q=0.5"}
_MARKDOWN_FIRST = {"Accept": "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,text/plain;q=0.8,*/*;q=0.5"}
_MAX_HEAD_BYTES = 64 * 1024
_MAX_REDIRECTS = 5
_CHALLENGE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions(NetworkSettings):
    connections_per_host: int = 16
    delay_seconds: float = 0.0  # time between a response of a host and the next request to it
    finds_challenges: bool = False  # read the bodies of refused pages, to detect browser checks
    policy: AddressPolicy = field(default_factory=AddressPolicy)


def http_options(config: Config, policy: AddressPolicy) -> HttpOptions:
    crawl = config.crawl
    return HttpOptions(
        **asdict(config.network),
        connections_per_host=crawl.concurrency,
        delay_seconds=crawl.delay_seconds,
        policy=policy,
        finds_challenges=crawl.render != "never",
    )


@dataclass(frozen=True, slots=True)
class _Terms:
    asked: str  # the requested URL, before redirects
    deadline: Deadline
    limit: int
    validators: Validators | None = None
    page: bool = True  # return permanent redirects as a result, and refuse other sites and media types
    cut: bool = False  # return the start of a body that exceeds the limit, instead of failing
    markdown: bool = False  # ask for Markdown in the Accept header


class HttpFetcher:
    """Fetches over HTTP and HTTPS; returns failures as results, and checks every IP address before connecting."""

    def __init__(
        self,
        options: HttpOptions,
        *,
        clock: Clock = lambda: datetime.now(UTC),
        refusal: Refusal | None = None,
        resolver: AbstractResolver | None = None,
        sleep: Sleep = asyncio.sleep,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._clock = clock
        self._refusal = refusal  # returns why a redirect is not followed; None: redirects to other sites are refused
        self._resolver = resolver
        self._sleep = sleep
        self._connections: Connections | None = None
        self.pace = HostPacing(options.delay_seconds, sleep=sleep, ticks=ticks)

    async def read(self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None) -> Fetched:
        """Fetch a file such as robots.txt or a sitemap: accept any media type, and follow redirects to any site.

        With `cut`, return the start of a file that is larger than `limit` bytes, instead of Refused.
        """
        return await self.fetch(Request(url=url, validators=validators), limit, page=False, cut=cut)

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()
            self._connections = None

    async def fetch(
        self, request: Request, limit: int | None = None, *, page: bool = True, cut: bool = False
    ) -> Fetched:
        """Request a URL and follow redirects until there is a result or a time limit is exceeded.

        The request is conditional if there are validators. With `page`, a permanent redirect is a result, and redirects
        to other sites and unsupported media types are refused. With `cut`, return the start of a body that exceeds the
        limit.
        """
        options = self._options
        deadline = Deadline(options.timeout_seconds, options.idle_seconds)
        limit = options.max_body_bytes if limit is None else limit
        terms = _Terms(request.url, deadline, limit, request.validators or None, page, cut, request.markdown)
        chain = [request.url]
        try:
            async with deadline.timeout:
                while True:
                    seen = await self._request(chain[-1], terms)
                    if seen is None:
                        terms = replace(terms, validators=None)
                        continue
                    if not isinstance(seen, Redirect):
                        return seen
                    end: Fetched | None = end_at(seen, chain, page=terms.page, most=_MAX_REDIRECTS)
                    if end := end or await self._bar_redirect(seen, terms):
                        return end
                    chain.append(seen.to or "")
        except TimeoutError:
            if not deadline.timeout.expired():
                raise
            return Failed(outcome=Outcome.TIMEOUT, reason=deadline.late)

    async def _request(self, url: str, terms: _Terms) -> Fetched | Redirect | None:
        """Send one request when the pacing of its host permits; the deadline pauses meanwhile.

        Return None if the server failed because the request was conditional; `fetch` then repeats it unconditionally.
        """
        connections = self._connections or self._open()
        origin = connections.origin("/".join(url.split("/", 3)[:3]))
        if origin is None:
            return Refused(reason="only http and https URLs without a user name are read")
        pace, known, turn = self.pace, terms.validators, None
        if pace.delays.get(origin.domain, pace.min_delay):
            with terms.deadline.paused():
                turn = await pace.enter(origin.domain)
        asked_host.set(origin.host)
        conditions = dict[str, str]()
        if known is not None and url == (known.url or terms.asked):  # only the URL that issued validators gets them
            conditions = answers.conditions(known, self._clock())
        try:
            accept = _MARKDOWN_FIRST if terms.markdown else _ANY_PAGE
            response = await connections.get(origin, url, accept | conditions)
            try:
                if response.status == 304 and conditions and known is not None:
                    return NotModified(validators=answers.renewed(known, response.headers))
                if response.status == 412 and conditions:
                    return None
                terms.deadline.data_arrived()
                return await self._interpret(response, url, terms)
            finally:
                response.release()
        except client.RAISED as error:
            if conditions and isinstance(error, client.NotHttp):  # such as a 304 with a body
                return None
            return client.request_failure(error, origin.host, self._options.connect_seconds)
        finally:
            pace.answered[origin.domain] = pace.ticks()
            if turn is not None:
                turn.release()

    async def _interpret(self, response: Response, url: str, terms: _Terms) -> Fetched | Redirect:
        status, headers = response.status, response.headers
        if sum(len(name) + len(value) for name, value in response.raw_headers) > _MAX_HEAD_BYTES:
            return Failed(reason="the response headers are larger than 64 KB", status_code=status)
        if status in answers.REDIRECTS:
            raw = answers.as_text(headers.get("Location", ""))
            wait = parse_retry_after(headers.get("Retry-After"), self._clock())
            return Redirect(status, canonical(raw, url) if raw else None, raw, wait)
        if status not in answers.CONTENT:
            refusal = answers.refusal_of(status, headers, self._clock())
            if status not in answers.CHALLENGING or not (terms.page and self._options.finds_challenges):
                return refusal
            start = await self._read(response, replace(terms, limit=_CHALLENGE_BYTES, cut=True))
            if isinstance(start, bytes) and isinstance(refusal, Refused | Failed):
                return replace(refusal, challenge=challenge_in(start.decode("latin-1")))
            return refusal
        media = answers.media_type_of(headers.get("Content-Type", ""))
        length = int(headers.get("Content-Length", 0))
        if terms.page and (media.is_unread or (media.is_unnamed and length > answers.MAX_UNNAMED_BYTES)):
            return Refused(reason=f"media type {media.name} is not supported", status_code=status)
        data = await self._read(response, terms, length)
        if not isinstance(data, bytes):
            return data
        validators = answers.renewed(Validators(url=url if url != terms.asked else None), headers)
        return answers.body_of(url, data, status, headers, validators)

    async def _read(self, response: Response, terms: _Terms, length: int = 0) -> bytes | Failed | Refused:
        """Return the decoded body; the limit applies to the decoded bytes and to the Content-Length."""
        coded = response.headers.getall("Content-Encoding", None)
        coding = answers.coding_of(coded) if coded else ""
        if coding is None:
            reason = f"content coding {answers.as_text(', '.join(coded or ()))[:60]} is not supported"
            return Refused(reason=reason, status_code=response.status)
        if not terms.cut and length > terms.limit:
            return _too_large(terms.limit, response.status)
        try:
            data = await answers.gather(response.content, coding, terms.limit, terms.deadline.data_arrived)
        except answers.BodyTooLarge:
            return _too_large(terms.limit, response.status)
        except answers.CodingError as error:
            return Failed(reason=str(error), status_code=response.status)
        if not terms.cut and len(data) > terms.limit:
            return _too_large(terms.limit, response.status)
        del data[terms.limit :]  # in place, because a slice would be a copy
        return bytes(data)

    async def _bar_redirect(self, hop: Redirect, terms: _Terms) -> Refused | Failed | None:
        """Return why a redirect is not followed; else wait as long as its Retry-After header asks, and return None."""
        if terms.page and self._refusal is not None:
            if why := await self._refusal(hop.to or "", terms.asked):
                return replace(why, reason=f"redirected to {hop.to}: {why.reason}", status_code=hop.status)
        elif terms.page and not same_site(terms.asked, hop.to or ""):
            return hop.refused(
                f"redirected to {hop.to}, which is outside this source; crawl that URL instead or widen the scope"
            )
        if hop.wait:
            if hop.wait >= self._options.idle_seconds:
                reason = f"{answers.status_words(hop.status)} that asks for a wait of {hop.wait:g} s"
                return Failed(reason=reason, status_code=hop.status, retry_after=hop.wait)
            await self._sleep(hop.wait)
        terms.deadline.data_arrived()
        return None

    def _open(self) -> Connections:
        options = self._options
        connector = aiohttp.TCPConnector(
            limit_per_host=options.connections_per_host,
            socket_factory=options.policy.open_socket,
            resolver=self._resolver,
        )
        headers = {"User-Agent": options.agent, "Accept-Encoding": answers.OFFERED}
        self._connections = Connections(connector, headers, options.connect_seconds)
        return self._connections


def _too_large(limit: int, status: int) -> Refused:
    size = f"{limit // 1024 // 1024} MB" if limit >= 1024 * 1024 else f"{limit // 1024} KB"
    return Refused(reason=f"body larger than {size}", status_code=status)
