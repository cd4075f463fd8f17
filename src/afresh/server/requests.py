"""FastAPI dependencies of routes: services limited by permissions, cursor and limit of a list, ids."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from afresh.kb import KnowledgeBase
from afresh.model.filters import Sources
from afresh.model.records import Source
from afresh.model.reports import PageView
from afresh.server.auth import allowed_of
from afresh.server.listing import MAX_ID, id_cursor, read_number
from afresh.server.replies import as_json, tagged

Item = TypeVar("Item")
MAX_LISTED = 1_000  # items in one part of a list
DEFAULT_LISTED = 100


async def _kb(request: Request) -> KnowledgeBase:
    kb: KnowledgeBase = request.app.state.kb
    return kb


Kb = Annotated[KnowledgeBase, Depends(_kb)]
Id = Annotated[int, Path(ge=1, le=MAX_ID, description="The id.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number of items.")]
Cursor = Annotated[str | None, Query(max_length=4_000, description="`next` of the previous answer.")]
OfSource = Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only from the source with this id.")]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Address = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class ListWindow:
    def __init__(self, cursor: str | None, limit: int) -> None:
        self.cursor = cursor
        self.limit = limit
        self.wanted = limit + 1  # one extra item shows whether there are more

    @property
    def number(self) -> int | None:
        return read_number(self.cursor)

    async def of(
        self, found: Awaitable[Sequence[Item]], cursor_of: Callable[[Item], str] = id_cursor
    ) -> dict[str, object]:
        items = await found
        here = list(items[: self.limit])
        return {"items": here, "next": cursor_of(here[-1]) if len(items) > self.limit else None}


async def _window(cursor: Cursor = None, limit: Limit = DEFAULT_LISTED) -> ListWindow:
    return ListWindow(cursor, limit)


Window = Annotated[ListWindow, Depends(_window)]


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RequestContext:
    """A request with the services of the store in `kb`, limited to the permissions of the client."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.allowed = allowed_of(request.scope)
        self.kb: KnowledgeBase = request.app.state.kb.scoped_to(self.allowed)

    def reply(self, value: object) -> Response:
        return tagged(self.request, as_json(value))

    async def sources(self, number: int | None) -> Sources:
        return None if number is None else [(await self.source(number)).id]

    async def source(self, number: int) -> Source:
        return await self.kb.sources.get(number)

    async def page(self, number: int) -> tuple[PageView, Source]:
        page = await self.kb.pages.get(number)
        return page, await self.source(page.source_id)


async def _context(request: Request) -> RequestContext:
    return RequestContext(request)


Context = Annotated[RequestContext, Depends(_context)]


async def _source(ctx: Context, number: Id) -> Source:
    return await ctx.source(number)


OneSource = Annotated[Source, Depends(_source)]
