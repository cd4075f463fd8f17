"""What the files of a site list together, gathered while they are read one after the other."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from afresh.aio import in_turns
from afresh.sources.web.lister_state import Remembered
from afresh.sources.web.sitemaps import SitemapListing


@dataclass(slots=True)
class Found:
    """Pages with their newest date, and what is to be told and remembered of the files."""

    urls: dict[str, datetime | None] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    files: dict[str, Remembered] = field(default_factory=dict)
    llms: list[str] = field(default_factory=list)  # that are there
    feeds: list[str] = field(default_factory=list)  # that are there
    tried: set[str] = field(default_factory=set)  # feeds that were asked for

    @property
    def dated(self) -> bool:
        """Whether something says when pages changed."""
        return any(self.urls.values())

    async def take(self, listing: SitemapListing, page: Callable[[str], str | None] = str) -> None:
        """Add what files list, each address as the page it stands for, if that belongs."""
        async for url, modified in in_turns(listing.urls.items(), lambda listed: listed[0]):
            known = page(url)
            if known is not None:
                self._keep(known, modified)
        self.dropped.update(listing.dropped)
        self.errors += listing.errors
        self.files |= listing.files

    def _keep(self, page: str, modified: datetime | None) -> None:
        before = self.urls.get(page)
        newer = modified is not None and (before is None or modified > before)
        self.urls[page] = modified if newer else before
