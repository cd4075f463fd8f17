"""Read robots.txt (RFC 9309), and decide which URLs one agent may fetch."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from afresh.dataclass import dataclass, field, replace
from afresh.model.fetch import Body, Failed, Fetched, Gone, Outcome, Refused, Validators
from afresh.ports import Clock
from afresh.sources.web.answers import EMPTY
from afresh.urls.canonical import canonical, domain_of, origin_of

MAX_DELAY_SECONDS = 60.0
MAX_SITEMAPS = 1_000  # further sitemaps in a robots.txt are ignored

_BOM = b"\xef\xbb\xbf"
_MAX_LINE_BYTES = 16 * 1024  # as in the reference parser: the rest of a longer line is ignored
_NAME = re.compile(  # field names, with common typos
    rb"(?P<agent>user[- ]?agent)|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    rb"|(?P<allow>allow)|(?P<sitemap>site-?map)|(?P<delay>crawl[- ]?delay)|(?P<rate>request[- ]?rate)"
)
_TOKEN = re.compile(rb"[a-z_-]*")
_EVERYONE = re.compile(rb"\*(?:\s|\Z)")
_NUMBER = re.compile(rb"\d{1,64}(?:\.\d{0,64})?(?:e\+?\d{1,3})?", re.IGNORECASE)
_RATE = re.compile(rb"(\d{1,9})\s*/\s*(\d{1,9})([smhd]?)(?:\s.*)?", re.IGNORECASE | re.DOTALL)
_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 86400}
MAX_ROBOTS_BYTES = 500 * 1024
_LARGE_BYTES = 16 * 1024  # a larger robots.txt is parsed in a thread
_KEPT = timedelta(hours=24)
_STALE_KEPT = timedelta(hours=1)
_OUTAGE_SECONDS = 1.0  # a failed request is not repeated for so long, so that concurrent pages share it
_BACK_OFF_SECONDS = 60.0
RobotsState = Literal["unknown", "ok", "none", "unreachable"]


class RobotsLine(NamedTuple):
    number: int
    allow: bool
    value: bytes


@dataclass(slots=True, eq=False)
class RobotsText:
    """The rules that a robots.txt has for one agent by name, or for all agents (`*`)."""

    named: bool = False  # a User-agent line has the name of the agent
    lines: list[RobotsLine] = field(default_factory=list)
    delay: float | None = None  # seconds between requests, at most 60


@dataclass(slots=True)
class _Audience:
    """The agents to which the current group of lines applies."""

    members: list[RobotsText] = field(default_factory=list)  # for each agent, the rules collected so far
    begun: bool = False  # the group has a rule, so the next User-agent line begins another group


def read(data: bytes, agent: str) -> tuple[RobotsText, tuple[str, ...]]:
    """Parse a robots.txt; return its rules for `agent` (else for all agents) and the sitemaps it names."""
    token = agent.lower().encode()
    own, common = RobotsText(), RobotsText()
    sitemaps: dict[str, None] = {}
    ruled, paced = _Audience(), _Audience()  # separate, because a delay does not end a group of rules
    for number, name, value in _fields(data):
        if name == "agent":
            rules = _addressed(value, token, own, common)
            for audience in (ruled, paced):
                if audience.begun:
                    audience.members, audience.begun = [], False
                if rules is not None and rules not in audience.members:
                    audience.members.append(rules)
        elif name == "sitemap":
            if len(sitemaps) < MAX_SITEMAPS:
                sitemaps.setdefault(value.decode("utf-8", "replace"))
        elif name in ("delay", "rate"):
            paced.begun = True
            seconds = _seconds(name, value)
            for rules in paced.members:
                if seconds is not None:
                    rules.delay = min(max(seconds, rules.delay or 0.0), MAX_DELAY_SECONDS)
        else:
            paced.begun = ruled.begun = True
            for rules in ruled.members:
                rules.lines.append(RobotsLine(number, name == "allow", value))
    return own if own.named else common, tuple(sitemaps)


def _fields(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield line number, name and value of every line with a known field name."""
    lines = data.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        name, colon, value = line[:_MAX_LINE_BYTES].partition(b"#")[0].partition(b":")
        if not colon:  # a missing colon is a common mistake
            words = name.split()
            if len(words) != 2:
                continue
            name, value = words
        found = _NAME.match(name.strip().lower())
        if found and found.lastgroup:
            yield number, found.lastgroup, value.strip()


def _addressed(value: bytes, token: bytes, own: RobotsText, common: RobotsText) -> RobotsText | None:
    """Return `common` if a User-agent line is `*`, `own` if it names `token` in any letter case, else None."""
    if _EVERYONE.match(value):
        return common
    found = _TOKEN.match(value.lower())
    if not found or found[0] != token:
        return None
    own.named = True
    return own


def _seconds(name: str, value: bytes) -> float | None:
    """Return the seconds between requests from a delay, or from a rate like `1/10s` or `100/15m`; None if invalid."""
    if name == "delay":
        return float(value) if _NUMBER.fullmatch(value) else None
    found = _RATE.fullmatch(value)
    if not found or not int(found[1]):
        return None
    return int(found[2]) * _UNITS[found[3].lower()] / int(found[1])


MAX_COMPARED_CHARS = 4_000_000  # limit of work for one URL: its length times the rules compared with it
TOO_MANY = "robots.txt has too many rules that may apply to this URL, so it is not fetched"

_PATH = re.compile(r"(?:[^/?#]*//)?[^/?;#]*([^#]*)")  # the group contains path and query
_ESCAPED = {code: f"%{code:02X}" for code in range(256) if not 0x20 <= code < 0x7F}
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_PLAIN = {f"%{ord(character):02X}": character for character in "-._~*$"}
_PLAINER = _PLAIN | {f"%{code:02X}": chr(code) for code in range(128) if chr(code).isalnum()}


@dataclass(slots=True)
class _Rule:
    """One Allow or Disallow line, parsed for matching."""

    line: int
    text: str
    rank: int  # the longest rule decides, and Allow between equal lengths (RFC 9309 2.2.2)
    head: str  # the text that a path must begin with
    pieces: tuple[str, ...]  # texts that must follow in this order, with anything between them
    needle: str  # the longest piece
    whole: bool  # the path must end after the last piece

    def matches(self, path: str) -> bool:
        """Return whether a path that begins with `self.head` matches the rule; takes linear time."""
        at = len(self.head)
        if not self.whole:
            return _after(path, self.pieces, at) >= 0
        if not self.pieces:
            return at == len(path)
        at = _after(path, self.pieces[:-1], at)
        return 0 <= at <= len(path) - len(self.pieces[-1]) and path.endswith(self.pieces[-1])


class TooManyRules(Exception):
    """Raised if so many rules may apply to a path that comparing it with all of them would take too long."""


class _Index:
    """Finds the rule that decides about a path, without comparing the path with all rules."""

    def __init__(self, rules: Iterable[_Rule]) -> None:
        self._by_head: dict[str, list[_Rule]] = {}
        for rule in sorted(rules, key=lambda each: -each.rank):
            self._by_head.setdefault(rule.head, []).append(rule)
        self._lengths = sorted(set(map(len, self._by_head)))

    def decide(self, path: str) -> _Rule | None:
        """Return the matching rule with the highest rank, or None; raise TooManyRules if that takes too much work."""
        best: _Rule | None = None
        left = MAX_COMPARED_CHARS
        for length in self._lengths:
            if length > len(path):
                break
            for rule in self._by_head.get(path[:length], ()):
                if best is not None and rule.rank <= best.rank:
                    break  # the remaining rules have a lower rank
                left -= len(path) + len(rule.text)
                if left < 0:
                    raise TooManyRules
                if rule.needle in path and rule.matches(path):  # the first check is fast and excludes nearly all rules
                    best = rule
                    break
        return best


class RobotsRules:
    """The rules of a robots.txt for one agent; invalid lines are ignored."""

    def __init__(self, data: bytes, agent: str) -> None:
        text, self.sitemaps = read(data, agent)
        self.crawl_delay = text.delay  # seconds between requests, at most 60; None if missing or invalid
        first: dict[tuple[bool, bytes], RobotsLine] = {}
        for line in text.lines:
            if line.value:
                first.setdefault((line.allow, line.value), line)
        self._allows = _Index(_rule(line, _PLAIN) for line in first.values() if line.allow)
        self._disallows = _Index(_rule(line, _PLAINER) for line in first.values() if not line.allow)

    def refusal(self, url: str) -> str | None:
        """Return why the agent may not fetch `url`, with the line of the rule; None if it may."""
        found = _PATH.match(url)
        path = found[1] if found else ""
        path = path if path.startswith("/") else f"/{path}"
        try:
            no = self._disallows.decide(_unescaped(path, _PLAINER) if "%" in path else path)
            if no is None or path == "/robots.txt":
                return None
            yes = self._allows.decide(_unescaped(path, _PLAIN))
        except TooManyRules:
            return TOO_MANY
        if yes is not None and yes.rank > no.rank:
            return None
        return f"robots.txt line {no.line}: Disallow: {no.text[:200]}"


def _rule(line: RobotsLine, plain: dict[str, str]) -> _Rule:
    text = line.value.decode("latin-1").translate(_ESCAPED)
    whole = text.endswith("$")
    head, *rest = (_unescaped(piece, plain) for piece in text.removesuffix("$").split("*"))
    if whole and rest and not rest[-1]:  # `*$` matches every end
        whole = False
    pieces = tuple(filter(None, rest))
    rank = 2 * len(text) + line.allow
    return _Rule(line.number, text, rank, head, pieces, max(pieces, key=len, default=""), whole)


def _after(path: str, pieces: Iterable[str], at: int) -> int:
    """Find all pieces in order in `path`, from `at` on; return the end of the last one, or -1 if one is missing."""
    for piece in pieces:
        found = path.find(piece, at)
        if found < 0:
            return -1
        at = found + len(piece)
    return at


def _unescaped(text: str, plain: dict[str, str]) -> str:
    """Replace the escapes in `plain` by their characters, and write other escapes in upper case (RFC 9309 2.2.2).

    Google's reference parser does not replace escaped letters. For Disallow rules, `plain` contains letters, too, so
    that a rule for `/a` also forbids `/%61`.
    """
    return _ESCAPE.sub(lambda found: plain.get(upper := found[0].upper(), upper), text)


class RobotsReader(Protocol):
    async def read(
        self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None
    ) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class _Known:
    state: RobotsState
    until: datetime
    rules: RobotsRules | None = None
    sitemaps: tuple[str, ...] = ()  # the sitemaps that it names, as canonical URLs
    answer: Refused | Failed | None = None  # the result for every page if the robots.txt is unreachable


@dataclass(slots=True)
class RobotsFiles:
    """Says what robots.txt allows; caches each robots.txt for a limited time."""

    reader: RobotsReader
    agent: str = "afresh"
    respect: bool = True
    clock: Clock = field(default=lambda: datetime.now(UTC))
    learn: Callable[[str, float], None] | None = None  # called with a host and the delay that its robots.txt asks for
    _known: dict[str, _Known] = field(default_factory=dict)
    _asking: dict[str, asyncio.Task[_Known]] = field(default_factory=dict)

    async def read(self, url: str, *, limit: int, cut: bool = False, validators: Validators | None = None) -> Fetched:
        """Fetch a file such as a sitemap if robots.txt allows it; a sitemap that robots.txt names is always allowed."""
        if self.respect:
            known = await self._of(origin_of(url))
            refusal = await self.refusal(url)
            if isinstance(refusal, Refused) and known.state == "unreachable":  # its list of sitemaps is unknown
                return Failed(reason=refusal.reason, status_code=refusal.status_code)
            if refusal and (known.answer or url not in known.sitemaps):
                return refusal
        return await self.reader.read(url, limit=limit, cut=cut, validators=validators)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Return why a page may not be fetched, or None if it may; request robots.txt if needed."""
        if not self.respect:
            return None
        origin = "/".join(url.split("/", 3)[:3])  # `origin_of` without a call, because every page needs it
        known = self._known.get(origin)
        if known is None or known.until <= self.clock():
            known = await self._of(origin)
        if known.answer is not None or known.rules is None:
            return known.answer
        reason = known.rules.refusal(url)
        return Refused(outcome=Outcome.BLOCKED_ROBOTS, reason=reason) if reason else None

    async def crawl_delay(self, url: str) -> float | None:
        if not self.respect:
            return 0.0
        known = await self._of(origin_of(url))
        if known.state == "unreachable":
            return None
        return (known.rules.crawl_delay if known.rules else None) or 0.0

    async def sitemaps(self, origin: str) -> tuple[str, ...]:
        return (await self._of(origin_of(f"{origin}/"))).sitemaps

    def state(self, origin: str) -> RobotsState:
        """Return the state of an origin's robots.txt; if it is "unreachable", the run is incomplete."""
        known = self._known.get(origin_of(f"{origin}/"))
        return known.state if known else "unknown"

    def forget(self) -> None:
        self._known.clear()

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()

    async def _of(self, origin: str) -> _Known:
        """Return the robots.txt of an origin; concurrent calls share one request for it."""
        known = self._known.get(origin)
        if known is not None and known.until > self.clock():
            return known
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.ensure_future(self._ask(origin))
            task.add_done_callback(lambda _: self._asking.pop(origin, None))
        return await asyncio.shield(task)  # cancelling one caller must not cancel the others

    async def _ask(self, origin: str) -> _Known:
        seen = await self.reader.read(f"{origin}/robots.txt", limit=MAX_ROBOTS_BYTES, cut=True)
        known = await self._interpret(seen, origin)
        old = self._known.get(origin)
        if known.state == "unreachable" and old is not None and old.state == "ok":
            # RFC 9309 2.4: an old copy may be used while the file is unreachable
            known = replace(old, until=max(known.until, self.clock() + _STALE_KEPT))
        self._known[origin] = known
        if self.learn is not None and known.rules is not None:
            self.learn(domain_of(f"{origin}/"), known.rules.crawl_delay or 0.0)
        return known

    async def _interpret(self, seen: Fetched, origin: str) -> _Known:
        now = self.clock()
        if isinstance(seen, Body):
            data = seen.data
            if len(data) >= MAX_ROBOTS_BYTES:  # drop the incomplete last line: a shortened rule would forbid more
                data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
            if len(data) <= _LARGE_BYTES:
                return _parsed(data, self.agent, origin, now + _KEPT)
            return await asyncio.to_thread(_parsed, data, self.agent, origin, now + _KEPT)
        if isinstance(seen, Gone):
            return _Known("none", now + _KEPT)
        status = seen.status_code or 0
        if isinstance(seen, Refused) and (status in EMPTY or 400 <= status < 500):  # RFC 9309 2.3.1.3
            return _Known("none", now + _KEPT)
        if isinstance(seen, Refused) and seen.status_code is None:  # the IP address is not allowed
            return _Known("unreachable", now + _KEPT, answer=seen)
        if isinstance(seen, Failed):  # an outage or a 429: until the next request, every page fails too
            wait = seen.retry_after
            if wait is None and status == 429:
                wait = _BACK_OFF_SECONDS
            failed = replace(seen, reason=_unreachable(seen.reason), retry_after=wait)
            until = now + timedelta(seconds=max(wait or 0.0, _OUTAGE_SECONDS))
            return _Known("unreachable", until, answer=failed)
        why = seen.reason if isinstance(seen, Refused) else "no content"
        refused = Refused(outcome=Outcome.BLOCKED_ROBOTS, reason=_unreachable(why), status_code=seen.status_code)
        return _Known("unreachable", now + _KEPT, answer=refused)


def _parsed(data: bytes, agent: str, origin: str, until: datetime) -> _Known:
    rules = RobotsRules(data, agent)
    urls = (canonical(raw, f"{origin}/") for raw in rules.sitemaps)
    return _Known("ok", until, rules, tuple(dict.fromkeys(url for url in urls if url)))


def _unreachable(why: str) -> str:
    return f"robots.txt unreachable ({why}): nothing is fetched from this site"
