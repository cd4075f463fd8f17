"""Dependencies of routes: the knowledge base within the permissions, parts of lists, checked values."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from afresh.kb import KnowledgeBase
from afresh.model.filters import Sources
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.server.auth import allowed_of
from afresh.server.listing import by_id, read_number
from afresh.server.replies import reply

Item = TypeVar("Item")

LARGEST = 2**63 - 1
MAX_LISTED = 1_000  # items in one part of a list
USUAL = 100


async def _kb(request: Request) -> KnowledgeBase:
    kb: KnowledgeBase = request.app.state.kb
    return kb


Kb = Annotated[KnowledgeBase, Depends(_kb)]
Id = Annotated[int, Path(ge=1, le=LARGEST, description="The number of it.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(max_length=4_000, description="Where to go on: `next` of the answer before.")
]
OfSource = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this source.")]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Address = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class ListWindow:
    """The part of a list that a request asks for."""

    def __init__(self, cursor: Cursor = None, limit: Limit = USUAL) -> None:
        self.cursor, self.limit = cursor, limit
        self.wanted = limit + 1  # one extra item shows whether there are more

    @property
    def number(self) -> int | None:
        """Return the id after which the part begins."""
        return read_number(self.cursor)

    def of(self, items: Sequence[Item], cursor_of: Callable[[Item], str] = by_id) -> dict[str, object]:
        """Return the items of this part and the cursor of the next one."""
        shown = items[: self.limit]
        return {"items": list(shown), "next": cursor_of(shown[-1]) if len(items) > self.limit else None}


Parted = Annotated[ListWindow, Depends()]


class RequestBody(BaseModel):
    """Base class of request bodies."""

    model_config = ConfigDict(extra="forbid")


class RequestContext:
    """A request with the knowledge base, limited to the permissions of the client."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.allowed = allowed_of(request.scope)
        self.kb: KnowledgeBase = request.app.state.kb.scoped_to(self.allowed)

    def reply(self, value: object) -> Response:
        return reply(self.request, value)

    async def sources(self, number: int | None = None) -> Sources:
        return None if number is None else [(await self.source(number)).id]

    async def source(self, number: int) -> Source:
        return await self.kb.sources.get(number)

    async def page(self, number: int) -> tuple[PageView, Source]:
        page = await self.kb.pages.get(number)
        return page, await self.source(page.source_id)


async def _reach(request: Request) -> RequestContext:
    return RequestContext(request)


Reached = Annotated[RequestContext, Depends(_reach)]
