"""Keeps to robots.txt (RFC 9309): a fetcher that asks the site's rules before the fetcher it wraps."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from afresh.model.fetch import Body, Failed, Fetched, Gone, Outcome, Refused, Request, Validators
from afresh.ports import Clock, Fetcher
from afresh.sources.web.answers import EMPTY
from afresh.sources.web.robots_rules import RobotsRules
from afresh.urls.canonical import canonical, domain_of, origin_of

LARGEST_BYTES = 500 * 1024
_LARGE_BYTES = 16 * 1024  # what is larger is parsed beside the event loop
_KEPT = timedelta(hours=24)
_STALE_KEPT = timedelta(hours=1)
_OUTAGE_SECONDS = 1.0  # pages that come at once share one verdict, a page that is tried again asks anew
_BACK_OFF_SECONDS = 60.0

RobotsState = Literal["unknown", "ok", "none", "unreachable"]


class Reader(Protocol):
    """Reads a file that serves the crawl, following every redirect."""

    async def read(
        self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None
    ) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the robots.txt of one origin."""

    state: RobotsState
    until: datetime
    rules: RobotsRules | None = None
    sitemaps: tuple[str, ...] = ()  # that it names, in canonical form
    answer: Refused | Failed | None = None  # for every page of an origin whose robots.txt is unreachable


class RobotsGate:
    """Fetches only what robots.txt allows; made anew (or told to `forget`) for every run."""

    def __init__(
        self,
        inner: Fetcher,
        reader: Reader,
        *,
        agent: str = "afresh",
        respect: bool = True,
        clock: Clock = lambda: datetime.now(UTC),
        learn: Callable[[str, float], None] | None = None,
    ) -> None:
        self._inner = inner
        self._reader = reader
        self._agent = agent
        self._respect = respect
        self._clock = clock
        self._learn = learn  # the distance that the host of a robots.txt asks for
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[_Known]] = {}

    async def fetch(self, request: Request) -> Fetched:
        """Look at a page if robots.txt lets us."""
        if refusal := await self.refusal(request.url):
            return refusal
        return await self._inner.fetch(request)

    async def read(
        self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None
    ) -> Fetched:
        """Read a file that serves the crawl; a sitemap that robots.txt itself names is always allowed."""
        if self._respect:
            known = await self._of(origin_of(url))
            refusal = _verdict(known, url)
            if isinstance(refusal, Refused) and known.state == "unreachable":  # nobody knows what is listed
                return Failed(outcome=Outcome.FAILED, reason=refusal.reason, status_code=refusal.status_code)
            if refusal and (known.answer or url not in known.sitemaps):
                return refusal
        return await self._reader.read(url, limit=limit, cut=cut, validators=validators)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why a page is not fetched, asking its origin for robots.txt if need be; None if it may be."""
        if not self._respect:
            return None
        known = self._known.get(origin_of(url))
        if known is None or known.until <= self._clock():
            known = await self._of(origin_of(url))
        return _verdict(known, url)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that the site asks for, at most 60; None while nobody can know."""
        if not self._respect:
            return 0.0
        known = await self._of(origin_of(url))
        if known.state == "unreachable":
            return None
        return (known.rules.crawl_delay if known.rules else None) or 0.0

    async def sitemaps(self, origin: str) -> tuple[str, ...]:
        """The sitemaps that the robots.txt of an origin names, in canonical form."""
        return (await self._of(origin_of(f"{origin}/"))).sitemaps

    def state(self, origin: str) -> RobotsState:
        """What its last answer said of an origin's robots.txt; "unreachable" makes the run incomplete."""
        known = self._known.get(origin_of(f"{origin}/"))
        return known.state if known else "unknown"

    def forget(self) -> None:
        """Drop what is known, so that the next run asks again."""
        self._known.clear()

    async def close(self) -> None:
        """Close the wrapped fetcher."""
        for task in self._asking.values():
            task.cancel()
        await self._inner.close()

    async def _of(self, origin: str) -> _Known:
        """What is known of an origin; requests that come at once share one look at its robots.txt."""
        known = self._known.get(origin)
        if known is not None and known.until > self._clock():
            return known
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.ensure_future(self._ask(origin))
            task.add_done_callback(lambda _: self._asking.pop(origin, None))
        return await asyncio.shield(task)  # one who gives up must not take the answer from the others

    async def _ask(self, origin: str) -> _Known:
        seen = await self._reader.read(f"{origin}/robots.txt", limit=LARGEST_BYTES, cut=True)
        known = await self._understand(seen, origin)
        old = self._known.get(origin)
        if known.state == "unreachable" and old is not None and old.state == "ok":
            # RFC 9309 2.4: a stale copy beats none
            known = replace(old, until=max(known.until, self._clock() + _STALE_KEPT))
        self._known[origin] = known
        if self._learn is not None and known.rules is not None:
            self._learn(domain_of(f"{origin}/"), known.rules.crawl_delay or 0.0)
        return known

    async def _understand(self, seen: Fetched, origin: str) -> _Known:
        now = self._clock()
        if isinstance(seen, Body):
            data = _whole_lines(seen.data)
            if len(data) <= _LARGE_BYTES:
                return _parsed(data, self._agent, origin, now + _KEPT)
            return await asyncio.to_thread(_parsed, data, self._agent, origin, now + _KEPT)
        if isinstance(seen, Gone) or (isinstance(seen, Refused) and _says_nothing(seen.status_code or 0)):
            return _Known("none", now + _KEPT)
        if isinstance(seen, Refused) and seen.status_code is None:  # the address itself is not allowed
            return _Known("unreachable", now + _KEPT, answer=seen)
        if isinstance(seen, Failed):
            return _out_of_order(seen, now)
        why = seen.reason if isinstance(seen, Refused) else "no content"
        refused = Refused(
            outcome=Outcome.BLOCKED_ROBOTS, reason=_unreachable(why), status_code=seen.status_code
        )
        return _Known("unreachable", now + _KEPT, answer=refused)


def _parsed(data: bytes, agent: str, origin: str, until: datetime) -> _Known:
    """What the bytes of a robots.txt say."""
    rules = RobotsRules(data, agent)
    urls = (canonical(raw, f"{origin}/") for raw in rules.sitemaps)
    return _Known("ok", until, rules, tuple(dict.fromkeys(url for url in urls if url)))


def _whole_lines(data: bytes) -> bytes:
    """The file without a rule that the size limit cut in two, as its half would forbid more."""
    if len(data) < LARGEST_BYTES:
        return data
    return data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]


def _says_nothing(status: int) -> bool:
    """Whether an answer without content stands for "no rules" (RFC 9309 2.3.1.3; 204 is an empty file)."""
    return status in EMPTY or 400 <= status < 500


def _verdict(known: _Known, url: str) -> Refused | Failed | None:
    """Why a page is not fetched, as far as its origin's robots.txt is known."""
    if known.answer is not None:
        return known.answer
    reason = known.rules.refusal(url) if known.rules else None
    return Refused(outcome=Outcome.BLOCKED_ROBOTS, reason=reason) if reason else None


def _out_of_order(seen: Failed, now: datetime) -> _Known:
    """An outage, or 429: neither rules nor none; every page fails with it until robots.txt is asked again."""
    wait = seen.retry_after
    if wait is None and seen.status_code == 429:
        wait = _BACK_OFF_SECONDS
    until = now + timedelta(seconds=max(wait or 0.0, _OUTAGE_SECONDS))
    failed = replace(seen, reason=_unreachable(seen.reason), retry_after=wait)
    return _Known("unreachable", until, answer=failed)


def _unreachable(why: str) -> str:
    return f"robots.txt unreachable ({why}): nothing is fetched from this site"
