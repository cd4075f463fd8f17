"""What one request may reach: every record is looked up through this, so none is shown that is closed."""

from typing import Annotated

from fastapi import Depends, Request

from afresh.core.access import Allowed
from afresh.core.errors import Unknown
from afresh.core.model import Source
from afresh.core.records import LinkRecord, Sources
from afresh.core.views import PageView
from afresh.faces.http.access import allowed_of
from afresh.kb import KnowledgeBase


class Reach:
    """The knowledge base as far as it is open to who asks."""

    def __init__(self, kb: KnowledgeBase, allowed: Allowed) -> None:
        self.kb = kb
        self.allowed = allowed

    async def visible(self) -> list[Source]:
        """The sources that are open."""
        return [source for source in await self.kb.all_sources() if self.allowed.sees(source.label)]

    async def sources(self, number: int | None = None) -> Sources:
        """One source, or all that are open; None: no matter which."""
        if number is not None:
            return [(await self.source(number)).id]
        return None if self.allowed.everywhere else [source.id for source in await self.visible()]

    async def labels(self, wanted: list[str]) -> list[str]:
        """The labels to search in: those wanted, or all that are open; none: no matter which."""
        if self.allowed.everywhere:
            return wanted
        for label in wanted:
            if not self.allowed.sees(label):
                raise Unknown(f"there is no source {label}")
        return wanted or [source.label for source in await self.visible()]

    async def source(self, number: int) -> Source:
        """The source with this number, if it is open."""
        source = await self.kb.source(number)
        if not self.allowed.sees(source.label):
            raise Unknown(f"there is no source {number}")
        return source

    async def page(self, number: int) -> tuple[PageView, Source]:
        """The page with this number, if it is open."""
        page = await self.kb.page(number)
        try:
            return page, await self.source(page.source_id)
        except Unknown:
            raise Unknown(f"there is no page {number}") from None

    async def link(self, number: int) -> LinkRecord:
        """The link with this number, if it is open."""
        link = await self.kb.link(number)
        try:
            await self.source(link.source_id)
        except Unknown:
            raise Unknown(f"there is no link {number} on any page") from None
        return link

    async def run(self, number: int) -> Source:
        """The source of a run, if it is open."""
        source = await self.kb.run_source(number)
        if not self.allowed.sees(source.label):
            raise Unknown(f"there is no run {number}")
        return source


async def _reach(request: Request) -> Reach:
    return Reach(request.app.state.kb, allowed_of(request.scope))


Reached = Annotated[Reach, Depends(_reach)]
