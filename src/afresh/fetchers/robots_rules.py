"""The rules of one robots.txt: who may fetch what, and which line says so."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from protego import Protego

LARGEST_DELAY_SECONDS = 60.0
_AGENT = re.compile(r"\s*user-agent\s*:\s*([A-Za-z_-]+)\s+[^\s#*]", re.IGNORECASE)
_MOST_RULES = 2_000  # beyond this the deciding line is not searched for


@dataclass(frozen=True, slots=True)
class _Rule:
    """One Disallow line that may concern us."""

    line: int
    pattern: str
    alone: Protego  # the same rule without any other


@dataclass(slots=True)
class RobotsRules:
    """What a robots.txt says to one agent; matching is protego's."""

    text: str
    agent: str
    _parsed: Protego = field(init=False)
    _rules: tuple[_Rule, ...] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._parsed = Protego.parse("\n".join(map(_plain, self.text.splitlines())))

    def refusal(self, url: str) -> str | None:
        """Why the agent may not fetch `url`, with the line where it can be told; None if it may."""
        if self._parsed.can_fetch(url, self.agent):
            return None
        if self._rules is None:
            self._rules = tuple(_disallows(self.text, self.agent))
        hits = [rule for rule in self._rules if not rule.alone.can_fetch(url, self.agent)]
        if not hits:
            return "robots.txt"
        rule = max(hits, key=lambda hit: len(hit.pattern))
        return f"robots.txt line {rule.line}: Disallow: {rule.pattern[:200]}"

    @property
    def crawl_delay(self) -> float | None:
        """Seconds between two requests that the site asks for, capped; None without a usable wish."""
        delay = self._parsed.crawl_delay(self.agent)
        return None if delay is None else min(float(delay), LARGEST_DELAY_SECONDS)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemap addresses as the file writes them."""
        return tuple(self._parsed.sitemaps)


def _plain(line: str) -> str:
    """A User-agent line with the product token alone (RFC 9309 2.2.1), which protego would take whole."""
    found = _AGENT.match(line)
    return f"User-agent: {found[1]}" if found else line


def _disallows(text: str, agent: str) -> Iterator[_Rule]:
    """The Disallow lines of the group that speaks to `agent`, else of the group for everyone."""
    groups = _groups(text)
    token = agent.lower()
    names = sorted((name for name in groups if name != "*" and token.startswith(name)), key=len)
    rules = groups[names[-1]] if names else groups.get("*", [])
    if len(rules) > _MOST_RULES:
        return
    for line, pattern in rules:
        yield _Rule(line, pattern, Protego.parse(f"User-agent: *\nDisallow: {pattern}"))


def _groups(text: str) -> dict[str, list[tuple[int, str]]]:
    """Agent name to its Disallow lines, groups of one agent merged (RFC 9309 2.2.1)."""
    groups: dict[str, list[tuple[int, str]]] = {}
    names: list[str] = []
    open_group = False
    for number, raw in enumerate(map(_plain, text.splitlines()), start=1):
        name, colon, value = raw.partition("#")[0].partition(":")
        directive, value = name.strip().lower(), value.strip()
        if not colon or directive == "sitemap":
            continue
        if directive == "user-agent":
            names = [*(names if open_group else ()), value.lower()]
            open_group = True
            continue
        open_group = False
        if directive == "disallow" and value:
            for agent in names:
                groups.setdefault(agent, []).append((number, value))
    return groups
