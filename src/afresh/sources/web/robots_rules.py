"""Reads the lines of a robots.txt into what it says to one agent (RFC 9309 2.2)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

LARGEST_DELAY_SECONDS = 60.0
MAX_SITEMAPS = 1_000  # that are kept, each once: no more are ever read

_BOM = b"\xef\xbb\xbf"
_LONGEST_LINE = 16 * 1024  # as the reference parser: the rest of a longer one is not read
_NAME = re.compile(  # names count by their beginning, and with the typos that are common
    rb"(?P<agent>user[- ]?agent)|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    rb"|(?P<allow>allow)|(?P<sitemap>site-?map)|(?P<delay>crawl[- ]?delay)|(?P<rate>request[- ]?rate)"
)
_TOKEN = re.compile(rb"[a-z_-]*")
_EVERYONE = re.compile(rb"\*(?:\s|\Z)")
_NUMBER = re.compile(rb"\d{1,64}(?:\.\d{0,64})?(?:e\+?\d{1,3})?", re.IGNORECASE)
_RATE = re.compile(rb"(\d{1,9})\s*/\s*(\d{1,9})([smhd]?)(?:\s.*)?", re.IGNORECASE | re.DOTALL)
_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 86400}


class Line(NamedTuple):
    """One line that allows or disallows."""

    number: int
    allow: bool
    value: bytes


@dataclass(slots=True, eq=False)
class Said:
    """What a robots.txt says to one agent, or to everyone."""

    named: bool = False
    lines: list[Line] = field(default_factory=list)
    delay: float | None = None  # seconds, capped

    def wait(self, seconds: float | None) -> None:
        """Note a pause that is asked for; the longest counts."""
        if seconds is not None:
            self.delay = min(max(seconds, self.delay or 0.0), LARGEST_DELAY_SECONDS)


class _Audience:
    """Whom the lines of a group speak to: agents add up until the group has begun."""

    def __init__(self) -> None:
        self._members: list[Said] = []
        self._begun = False

    def add(self, said: Said | None) -> None:
        """Hear the name of an agent; None is somebody else."""
        if self._begun:
            self._members, self._begun = [], False
        if said is not None and said not in self._members:
            self._members.append(said)

    def begin(self) -> list[Said]:
        """Who hears what comes now."""
        self._begun = True
        return self._members


def read(data: bytes, agent: str) -> tuple[Said, tuple[str, ...]]:
    """What a robots.txt says to `agent` (else to everyone), and the sitemaps it names."""
    token = agent.lower().encode()
    own, common = Said(), Said()
    sitemaps: dict[str, None] = {}
    ruled, paced = _Audience(), _Audience()  # a pause ends the names before it, but does not begin rules
    for number, name, value in _fields(data):
        if name == "agent":
            said = _addressed(value, token, own, common)
            ruled.add(said)
            paced.add(said)
        elif name == "sitemap":
            if len(sitemaps) < MAX_SITEMAPS:
                sitemaps.setdefault(value.decode("utf-8", "replace"))
        elif name in ("delay", "rate"):
            seconds = _seconds(value) if name == "delay" else _interval(value)
            for said in paced.begin():
                said.wait(seconds)
        else:
            paced.begin()
            for said in ruled.begin():
                said.lines.append(Line(number, name == "allow", value))
    return own if own.named else common, tuple(sitemaps)


def _fields(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Line number, name and value of every line that means something."""
    lines = data.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        name, colon, value = line[:_LONGEST_LINE].partition(b"#")[0].partition(b":")
        if not colon:  # some forget it
            words = name.split()
            if len(words) != 2:
                continue
            name, value = words
        found = _NAME.match(name.strip().lower())
        if found and found.lastgroup:
            yield number, found.lastgroup, value.strip()


def _addressed(value: bytes, token: bytes, own: Said, common: Said) -> Said | None:
    """Whom a User-agent line names: by its product token alone, in any case (RFC 9309 2.2.1)."""
    if _EVERYONE.match(value):
        return common
    found = _TOKEN.match(value.lower())
    if not found or found[0] != token:
        return None
    own.named = True
    return own


def _seconds(value: bytes) -> float | None:
    return float(value) if _NUMBER.fullmatch(value) else None


def _interval(value: bytes) -> float | None:
    """Seconds between two requests at a rate like `1/10s` or `100/15m`."""
    found = _RATE.fullmatch(value)
    if not found or not int(found[1]):
        return None
    return int(found[2]) * _UNITS[found[3].lower()] / int(found[1])


MAX_COMPARED_CHARACTERS = 4_000_000  # of one URL, over all rules it is compared with
TOO_MANY = "robots.txt has too many rules that may concern this URL: it is left alone"

_PATH = re.compile(r"(?:[^/?#]*//)?[^/?;#]*([^#]*)")
_ESCAPED = {code: f"%{code:02X}" for code in range(256) if not 0x20 <= code < 0x7F}
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_PLAIN = {f"%{ord(character):02X}": character for character in "-._~*$"}
_PLAINER = _PLAIN | {f"%{code:02X}": chr(code) for code in range(128) if chr(code).isalnum()}


@dataclass(slots=True)
class _Rule:
    """One line that allows or disallows, ready to be matched."""

    line: int
    text: str
    rank: int  # the longer one decides; of two as long the one that allows (RFC 9309 2.2.2)
    head: str  # what a path must begin with
    pieces: tuple[str, ...]  # what must follow, in this order and with anything between
    needle: str  # the longest of the pieces
    whole: bool  # nothing may follow the last piece

    def matches(self, path: str) -> bool:
        """Whether a path that begins with `head` goes on as it must; every piece is searched for once."""
        at = len(self.head)
        if not self.whole:
            return _after(path, self.pieces, at) >= 0
        if not self.pieces:
            return at == len(path)
        at = _after(path, self.pieces[:-1], at)
        return 0 <= at <= len(path) - len(self.pieces[-1]) and path.endswith(self.pieces[-1])


class TooManyRules(Exception):
    """More rules may concern a path than it can be compared with."""


class _Index:
    """Finds the strongest rule that matches, without trying every one."""

    def __init__(self, rules: Iterable[_Rule]) -> None:
        self._by_head: dict[str, list[_Rule]] = {}
        for rule in sorted(rules, key=lambda each: -each.rank):
            self._by_head.setdefault(rule.head, []).append(rule)
        self._lengths = sorted(set(map(len, self._by_head)))

    def decide(self, path: str) -> _Rule | None:
        """The strongest rule for a path; TooManyRules where that takes more work than a page is worth."""
        best: _Rule | None = None
        left = MAX_COMPARED_CHARACTERS
        for length in self._lengths:
            if length > len(path):
                break
            for rule in self._by_head.get(path[:length], ()):
                if best is not None and rule.rank <= best.rank:
                    break  # weaker ones follow
                left -= len(path) + len(rule.text)
                if left < 0:
                    raise TooManyRules
                if rule.needle in path and rule.matches(path):  # one search rules out nearly every other
                    best = rule
                    break
        return best


class RobotsRules:
    """What a robots.txt says to one agent; any bytes are a robots.txt."""

    def __init__(self, data: bytes, agent: str) -> None:
        said, self.sitemaps = read(data, agent)
        self.crawl_delay = said.delay  # seconds between two requests, capped; None without a usable wish
        first: dict[tuple[bool, bytes], Line] = {}
        for line in said.lines:
            if line.value:
                first.setdefault((line.allow, line.value), line)
        self._allows = _Index(_rule(line, _PLAIN) for line in first.values() if line.allow)
        self._disallows = _Index(_rule(line, _PLAINER) for line in first.values() if not line.allow)

    def refusal(self, url: str) -> str | None:
        """Why the agent may not fetch `url`, with the line that says so; None if it may."""
        path = _path(url)
        try:
            no = self._disallows.decide(_unescaped(path, _PLAINER))
            if no is None or path == "/robots.txt":
                return None
            yes = self._allows.decide(_unescaped(path, _PLAIN))
        except TooManyRules:
            return TOO_MANY
        if yes is not None and yes.rank > no.rank:
            return None
        return f"robots.txt line {no.line}: Disallow: {no.text[:200]}"


def _rule(line: Line, plain: dict[str, str]) -> _Rule:
    text = line.value.decode("latin-1").translate(_ESCAPED)
    whole = text.endswith("$")
    head, *rest = (_unescaped(piece, plain) for piece in text.removesuffix("$").split("*"))
    if whole and rest and not rest[-1]:  # `*$` is the end of anything
        whole = False
    pieces = tuple(filter(None, rest))
    rank = 2 * len(text) + line.allow
    return _Rule(line.number, text, rank, head, pieces, max(pieces, key=len, default=""), whole)


def _after(path: str, pieces: Iterable[str], at: int) -> int:
    """Where the last piece ends, each at its first place behind the one before; -1 if one is missing."""
    for piece in pieces:
        found = path.find(piece, at)
        if found < 0:
            return -1
        at = found + len(piece)
    return at


def _path(url: str) -> str:
    """Path and query of an address."""
    found = _PATH.match(url)
    path = found[1] if found else ""
    return path if path.startswith("/") else f"/{path}"


def _unescaped(text: str, plain: dict[str, str]) -> str:
    """Text with the needless escapes of `plain` undone and the others in upper case (RFC 9309 2.2.2).

    The reference parser leaves escaped letters alone; a rule that forbids does not, so that it is never read
    more narrowly than it may be meant.
    """
    if "%" not in text:
        return text
    return _ESCAPE.sub(lambda found: plain.get(upper := found[0].upper(), upper), text)
