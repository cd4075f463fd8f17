"""Count pages by URL pattern, to stop infinite URL spaces (urls/traps.py)."""

import asyncio
from collections import Counter
from collections.abc import Iterable

from afresh.aio import yield_in_turns
from afresh.dataclass import dataclass, field
from afresh.model.fetch import Link
from afresh.model.records import SourceId
from afresh.store.store import Store
from afresh.text.quantities import count
from afresh.urls.scope import ENDLESS, Rules
from afresh.urls.traps import display_pattern, is_vouched_for, pattern_of

NOTES = 5  # traps that are listed individually


@dataclass(slots=True)
class UrlPatternCounter:
    """Counts the pages of a source by URL pattern: the URL with placeholders for its numbers and ids."""

    store: Store
    source: SourceId
    rules: Rules
    _known: set[int] = field(default_factory=set)  # hashes of admitted URLs that have a pattern
    _counts: Counter[str] = field(default_factory=Counter)
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _loaded: bool = False

    async def let_in(self, links: Iterable[Link], found_on: str) -> frozenset[str]:
        """Return the URLs of links that the limit of pages per URL pattern admits, and count them."""
        if not self.rules.max_per_pattern:
            return frozenset(link.url for link in links)
        plain, open_ = set(), []
        for link in links:
            if pattern_of(link.url, self.rules.root) is not None:
                open_.append(link)
            else:
                plain.add(link.url)
        if open_:
            await self.load()
            plain.update(link.url for link in open_ if self.admits(link.url, found_on, link.follow))
        return frozenset(plain)

    async def load(self) -> None:
        async with self._loading:
            if self._loaded:
                return
            for url, listed in await self.store.links.urls(self.source):
                if pattern := pattern_of(url, self.rules.root):
                    self._known.add(hash(url))
                    self._counts[pattern] += not listed
            self._loaded = True

    def admits(self, url: str, found_on: str | None, follow: bool = True) -> bool:
        """Return whether a URL may become a page, and count it if so; a repeated call does not count it again.

        `found_on`, the page with the link (None: no page), may vouch for a URL beyond the limit. Without `follow`, a
        new URL that has a pattern is refused.
        """
        most = self.rules.max_per_pattern
        pattern = pattern_of(url, self.rules.root) if most else None
        if pattern is None or hash(url) in self._known:
            return True
        vouched = found_on is not None and is_vouched_for(url, found_on, self.rules.root)
        if not follow or (self._counts[pattern] >= most and not vouched):
            return False
        self._known.add(hash(url))
        self._counts[pattern] += 1
        return True


async def trap_notes(store: Store, source: SourceId, rules: Rules) -> list[str]:
    """Return a note for each infinite URL space, with the command-line option that admits more of it."""
    patterns: Counter[str] = Counter()
    forms: dict[str, list[str]] = {}
    async for url in yield_in_turns(await store.links.left_out(source), str):
        reason = rules.refusal(url, 0)
        if reason is None and (pattern := pattern_of(url, rules.root)):
            patterns[pattern] += 1
        elif reason is not None and reason.startswith(ENDLESS):
            forms.setdefault("path" if "path" in reason else "query", []).append(url)
    notes = [_pattern_note(pattern, left, rules) for pattern, left in patterns.most_common(NOTES)]
    if len(patterns) > NOTES:
        notes.append(f"{len(patterns) - NOTES} more patterns look infinite")
    return notes + [_form_note(form, urls) for form, urls in forms.items()]


def _pattern_note(pattern: str, left: int, rules: Rules) -> str:
    most = rules.max_per_pattern
    return (
        f"stopped at {count(most, 'page')} like {display_pattern(pattern)}: this looks infinite, "
        f"{count(left, 'link')} left out; `afresh crawl {rules.root} --max-per-pattern {most * 5}` admits more"
    )


def _form_note(form: str, urls: list[str]) -> str:
    why = "the path repeats itself" if form == "path" else "the parameters keep growing"
    example = display_pattern(min(urls, key=len))[:100]
    return f"{count(len(urls), 'link')} left out, such as {example}: {why}; `--max-per-pattern none` admits them"
