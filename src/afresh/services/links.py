"""The use cases of links: list, add, score and remove them."""

from collections.abc import Mapping
from dataclasses import replace

from afresh.errors import Unknown, UsageError
from afresh.links.score import KeywordError, checked_keywords, total_score, usual
from afresh.model.filters import ALL_LINKS, LinkFilter, LinkPlace, LinkRecord, Sources
from afresh.model.records import PageId
from afresh.model.reports import (
    LinkView,
)
from afresh.services.context import Service
from afresh.services.records import (
    link_of,
    source_of,
)


class LinkService(Service):
    """Links."""

    async def of_source(
        self,
        label: str,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        """The links of a source, or of one of its pages, those worth most first."""
        source, on = await self._source(label), page and self._tools.address(page)
        word = keyword and usual(keyword)
        return await self._store.links.of_source(
            source.id, page=on, keyword=word, min_score=min_score, limit=limit
        )

    async def records(
        self,
        sources: Sources,
        which: LinkFilter = ALL_LINKS,
        *,
        after: LinkPlace | None = None,
        limit: int,
    ) -> list[LinkRecord]:
        """Links with the pages they stand on, those worth most first."""
        known = replace(which, keyword=usual(which.keyword) if which.keyword else None)
        return list(await self._store.links.records(sources, known, after=after, limit=limit))

    async def get(self, number: int) -> LinkRecord:
        """One link."""
        return await link_of(self._store, number)

    async def add(self, page: int, url: str, text: str) -> LinkRecord:
        """Put a link on a page, until the links of the page change."""
        made = await self._store.links.add(PageId(page), self._tools.web_address(url), text)
        if made is None:
            raise Unknown(f"there is no page {page}")
        return await link_of(self._store, made)

    async def set_worth(
        self,
        number: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> LinkRecord:
        """Set what a link is worth, until it is scored again; without a score, its keywords make it."""
        link = await link_of(self._store, number)
        if keywords is not None:
            try:
                keywords = checked_keywords(keywords.items())
            except KeywordError as wrong:
                raise UsageError(f"keywords: {wrong}") from None
            if score is None and keywords:
                weights = self._tools.keywords(await source_of(self._store, link.source_id))
                score = total_score(keywords, weights)
        await self._store.links.set_worth(number, score, comment, keywords)
        return await link_of(self._store, number)

    async def remove(self, number: int) -> None:
        """Take a link off all pages, until the links of one change."""
        if not await self._store.links.remove(number):
            raise Unknown(f"there is no link {number} on any page")
