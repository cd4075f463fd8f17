"""Reads the lines of a robots.txt into what it says to one agent (RFC 9309 2.2)."""

import re
from collections.abc import Iterator
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
