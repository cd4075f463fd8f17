"""The rules of one robots.txt (RFC 9309): whether a page may be fetched, and which line says so."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from afresh.fetchers.robots_lines import Line, read

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
