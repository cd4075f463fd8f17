"""Detect pages that answer 200 but show something else: soft 404s, login walls, identical pages."""

import asyncio
from typing import TYPE_CHECKING

from afresh.crawl.hosts import HOST_PAUSE_SECONDS, fetch_politely
from afresh.crawl.plausibility import SAME, is_strange
from afresh.dataclass import dataclass, field
from afresh.errors import ExtractError
from afresh.model.fetch import Body, ContentSignals, Document, Request
from afresh.model.records import Claim
from afresh.text.normalize import WIDTH, likeness, sketch_of

if TYPE_CHECKING:
    from afresh.crawl.tools import RunTools

SUFFIXES = (".html", ".htm", ".php", ".aspx", ".md")


@dataclass(slots=True)
class Soft404Probe:
    """Requests a URL that cannot exist, once for each site and file suffix, to compare pages with the response."""

    folder: str  # of the root page
    name: str  # random, so that no site knows it
    _answers: dict[tuple[str, str], asyncio.Future[str]] = field(default_factory=dict)

    async def is_like_missing(self, claim: Claim, sketch: str, tools: "RunTools") -> bool:
        url = claim.page.url
        suffix = next((ending for ending in SUFFIXES if url.partition("?")[0].endswith(ending)), "")
        site = f"{url.partition('//')[0]}//{claim.domain}/"
        if (site, suffix) not in self._answers:
            folder = self.folder if self.folder.startswith(site) else site
            asked = asyncio.ensure_future(_sketch_at(claim.domain, folder + self.name + suffix, tools))
            self._answers[site, suffix] = asked
        missing = await asyncio.shield(self._answers[site, suffix])
        return bool(missing and sketch) and likeness(missing, sketch) >= SAME


KEYS = 4  # leading numbers of a sketch by which groups are found: similar pages almost certainly share one
MAX_GROUPS = 2_000  # groups to remember
MAX_MEMBERS = 50  # URLs to remember per group: enough to be sure


@dataclass(slots=True)
class _Group:
    """URLs that show the same text now. A sketch is a fingerprint of a text, by which similar texts are found."""

    sketch: str  # of the text now
    before: dict[str, str] = field(default_factory=dict)  # URL → sketch of its former text


@dataclass(slots=True)
class WallDetector:
    _groups: dict[str, _Group] = field(default_factory=dict)  # by the first numbers of the sketch

    def join(self, url: str, before: str, sketch: str) -> int:
        """Add a URL; return how many other URLs have the same content now but had different content before."""
        group = self._group(sketch)
        if len(group.before) < MAX_MEMBERS:
            group.before[url] = before
        others = [old for other, old in group.before.items() if other != url]
        return sum(1 for old in others if likeness(old, before) < SAME)

    def _group(self, sketch: str) -> _Group:
        keys = [sketch[at : at + WIDTH] for at in range(0, KEYS * WIDTH, WIDTH)]  # "" for an empty page
        for key in keys:
            found = self._groups.get(key)
            if found is not None and likeness(found.sketch, sketch) >= SAME:
                return found
        group = _Group(sketch)
        if len(self._groups) < MAX_GROUPS * KEYS:
            self._groups |= dict.fromkeys(keys, group)
        return group


async def content_signals(claim: Claim, document: Document, tools: "RunTools") -> ContentSignals:
    """Return the signals by which `crawl/plausibility.py` judges content; none for unchanged content."""
    page, run, probe = claim.page, claim.run_id, tools.probe
    if page.content_hash == document.content_hash:
        return ContentSignals(run=run)
    at_root, trusted = page.depth == 0, not tools.policy.doubts  # with `--trust` no probe is sent
    if page.content_hash is None:  # the root is accepted as it is
        if probe is None or at_root or trusted:
            return ContentSignals(run=run)
        return ContentSignals(run=run, like_missing=await probe.is_like_missing(claim, document.sketch, tools))
    held = await tools.store.pages.content(page.id)
    before, length = held.sketch, held.length
    if trusted:
        return ContentSignals(run=run, likeness=likeness(before, document.sketch) if length else None, length=length)
    if page.doubt is not None and held.former and not tools.policy.holds:  # the stored content is the login page itself
        before, length = await asyncio.to_thread(sketch_of, held.former, page.url), len(held.former)
    alike, lookalikes = likeness(before, document.sketch) if length else None, 0
    if is_strange(alike):  # other URLs with the same page, in this or an earlier run
        in_run = tools.wall_detector.join(page.url, before, document.sketch)
        lookalikes = max(in_run, await tools.store.pages.count_alike(page, document, run))
    like_missing = probe is not None and await probe.is_like_missing(claim, document.sketch, tools)
    former = len(held.former or "") if page.doubt is not None else 0
    return ContentSignals(
        run=run,
        likeness=alike,
        length=max(held.length or 0, former) or None,
        lookalikes=lookalikes,
        like_missing=like_missing
        and (not at_root or lookalikes > 0),  # many sites show their start page for missing URLs
    )


async def _sketch_at(domain: str, url: str, tools: "RunTools") -> str:
    """Fetch a page and return the sketch of its text, or "" if there is no page."""
    fetched = await fetch_politely(domain, Request(url=url), tools, HOST_PAUSE_SECONDS)
    if not isinstance(fetched, Body):
        return ""
    try:
        document = await tools.parsers.call(tools.extract, fetched)
    except ExtractError:
        return ""
    return document.sketch
