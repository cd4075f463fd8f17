"""What one request may reach: every route gets at the knowledge base through this alone."""

from typing import Annotated

from fastapi import Depends, Request

from afresh.access.permissions import Allowed
from afresh.kb import KnowledgeBase
from afresh.model.filters import LinkRecord, Sources
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.server.auth import allowed_of


class Reach:
    """The knowledge base as far as it is open to who asks: it holds nothing that is closed."""

    def __init__(self, kb: KnowledgeBase, allowed: Allowed) -> None:
        self.kb = kb.scoped_to(allowed)
        self.allowed = allowed

    async def visible(self) -> list[Source]:
        """The sources that are open."""
        return list(await self.kb.sources.all())

    async def sources(self, number: int | None = None) -> Sources:
        """One source; None: all that are open."""
        return None if number is None else [(await self.source(number)).id]

    async def source(self, number: int) -> Source:
        """The source with this number, if it is open."""
        return await self.kb.sources.get(number)

    async def page(self, number: int) -> tuple[PageView, Source]:
        """The page with this number, if it is open."""
        page = await self.kb.pages.get(number)
        return page, await self.source(page.source_id)

    async def link(self, number: int) -> LinkRecord:
        """The link with this number, if it is open."""
        return await self.kb.links.get(number)

    async def run(self, number: int) -> Source:
        """The source of a run, if it is open."""
        return await self.kb.runs.source_of(number)


async def _reach(request: Request) -> Reach:
    return Reach(request.app.state.kb, allowed_of(request.scope))


Reached = Annotated[Reach, Depends(_reach)]
