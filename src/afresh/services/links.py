"""List, add, score and remove links."""

from collections.abc import Mapping

from afresh.dataclass import replace
from afresh.errors import NotFound, UsageError
from afresh.links.score import KeywordError, checked_keywords, normalize_keyword, total_score
from afresh.model.filters import ALL_LINKS, LinkCursor, LinkFilter, LinkRecord, Sources
from afresh.model.records import PageId
from afresh.model.reports import LinkView
from afresh.services.context import Service
from afresh.services.resolve import source_of
from afresh.sources.detect import address as address_of
from afresh.sources.detect import web_address


class LinkService(Service):
    async def of_source(
        self,
        label: str,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        source, on, word = await self._source(label), page and address_of(page), keyword and normalize_keyword(keyword)
        return await self._store.links.of_source(source.id, page=on, keyword=word, min_score=min_score, limit=limit)

    async def records(
        self, sources: Sources, which: LinkFilter = ALL_LINKS, *, after: LinkCursor | None = None, limit: int
    ) -> list[LinkRecord]:
        known = replace(which, keyword=normalize_keyword(which.keyword) if which.keyword else None)
        return list(await self._store.links.records(sources, known, after=after, limit=limit))

    async def get(self, number: int) -> LinkRecord:
        if (link := await self._store.links.get(number)) is None:
            raise NotFound(f"there is no link {number} on any page")
        return link

    async def add(self, page: int, url: str, text: str) -> LinkRecord:
        """Add a link to a page; the link stays until a check finds that the links of the page have changed."""
        if (made := await self._store.links.add(PageId(page), web_address(url), text)) is None:
            raise NotFound(f"there is no page {page}")
        return await self.get(made)

    async def set_worth(
        self, number: int, score: float | None, comment: str | None, keywords: Mapping[str, float] | None = None
    ) -> LinkRecord:
        """Set score, comment and keywords of a link until it is scored again.

        If `keywords` is None, the stored keywords stay; if only `score` is None, it is computed from `keywords`.
        """
        link = await self.get(number)
        if keywords is not None:
            try:
                keywords = checked_keywords(keywords.items())
            except KeywordError as wrong:
                raise UsageError(f"keywords: {wrong}") from None
            if score is None and keywords:
                own = self._tools.settings_of(await source_of(self._store, link.source_id))
                score = total_score(keywords, own.links.keywords)
        await self._store.links.set_worth(number, score, comment, keywords)
        return await self.get(number)

    async def remove(self, number: int) -> None:
        """Remove a link from all pages; it is stored again if the links of a page that contains it change."""
        if not await self._store.links.remove(number):
            raise NotFound(f"there is no link {number} on any page")
