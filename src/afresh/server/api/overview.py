"""The store at a glance, and external stores."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from afresh.model.records import PageStatus
from afresh.model.reports import FoundVersion, StoreStatus
from afresh.server.api.replies import made, reply
from afresh.server.cursors import read_number
from afresh.server.idempotency import Key, OnceRoute
from afresh.server.listing import Listing, by_id, part
from afresh.server.parts import USUAL, Cursor, Id, Label, Limit
from afresh.server.request_context import Reached
from afresh.sync.reports import CopyView, PageCopy, SinkView, SyncReport

router = APIRouter(tags=["overview"], route_class=OnceRoute)


class SourceCopies(BaseModel):
    """How a source stands in external stores."""

    model_config = ConfigDict(extra="forbid")

    source_id: int
    sinks: list[SinkView] = Field(default_factory=list)


class Sync(BaseModel):
    """How to bring external stores in line."""

    model_config = ConfigDict(extra="forbid")

    to: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        [], max_length=50, description="Only these external stores; else all that hold the source."
    )
    dry_run: bool = Field(False, description="Tell what would be done, and do nothing.")
    verify: bool = Field(False, description="Also list what the stores hold, and repair what is ours.")


class Synced(BaseModel):
    """What was done in each external store, or would be."""

    source_id: int
    reports: list[SyncReport]


class PageCopies(BaseModel):
    """How a page stands in external stores."""

    page_id: int
    copies: list[CopyView] = Field(default_factory=list)


@router.get("/status", response_model=StoreStatus)
async def status(request: Request, reach: Reached) -> Response:
    """Sizes, waiting work, and runs that need attention."""
    reach.allowed.check_everywhere()
    return reply(request, await reach.kb.status.get())


@router.get("/versions", response_model=FoundVersion)
async def find_version(
    request: Request, reach: Reached, label: Annotated[Label, Query(description="As react@^18.")]
) -> Response:
    """The version of a source that a label means, and the versions there are."""
    return reply(request, await reach.kb.sources.find_version(label))


@router.get("/sources/{number}/copies", response_model=SourceCopies)
async def copies_of_source(request: Request, reach: Reached, number: Id) -> Response:
    """How the pages of a source stand in external stores."""
    source = await reach.source(number)
    return reply(request, {"source_id": source.id, "sinks": await reach.kb.sinks.views([source])})


@router.get("/sources/{number}/copies/pages", response_model=Listing[PageCopy])
async def pages_of_copies(
    request: Request,
    reach: Reached,
    number: Id,
    sink: Annotated[str, Query(max_length=100, description="The external store.")],
    state: Annotated[PageStatus | None, Query(description="Only copies in this state.")] = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The pages of a source, and how each stands in one external store."""
    source = await reach.source(number)
    found = await reach.kb.sinks.copies(
        source, sink, state=state, after=read_number(cursor) or 0, limit=limit + 1
    )
    return reply(request, part(found, limit, by_id))


@router.post("/sources/{number}/sync", response_model=Synced)
async def sync_source(reach: Reached, number: Id, body: Sync, key: Key = None) -> Response:
    """Bring the external stores of a source in line now, and answer when that is done.

    Who does not stay until then finds it in `copies`. A store that is being
    synced just now is `busy`; 409 if there is no other.
    """
    source = await reach.source(number)
    reports = await reach.kb.sinks.sync_source(source, to=body.to, dry_run=body.dry_run, verify=body.verify)
    return made({"source_id": source.id, "reports": reports}, 200)


@router.get("/pages/{number}/copies", response_model=PageCopies)
async def copies_of_page(request: Request, reach: Reached, number: Id) -> Response:
    """The copies of a page in external stores."""
    page, _ = await reach.page(number)
    return reply(request, {"page_id": page.id, "copies": page.copies})
