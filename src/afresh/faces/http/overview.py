"""The store at a glance, and external stores."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from afresh.core.sync_views import CopyView, SinkView
from afresh.core.views import FoundVersion, StoreStatus
from afresh.faces.http.parts import Id, Label
from afresh.faces.http.reach import Reached
from afresh.faces.http.replies import reply

router = APIRouter(tags=["overview"])


class SourceCopies(BaseModel):
    """How a source stands in external stores."""

    model_config = ConfigDict(extra="forbid")

    source_id: int
    sinks: list[SinkView] = Field(default_factory=list)


class PageCopies(BaseModel):
    """How a page stands in external stores."""

    page_id: int
    copies: list[CopyView] = Field(default_factory=list)


@router.get("/status", response_model=StoreStatus)
async def status(request: Request, reach: Reached) -> Response:
    """Sizes, waiting work, and runs that need attention."""
    reach.allowed.check_everywhere()
    return reply(request, await reach.kb.status())


@router.get("/versions", response_model=FoundVersion)
async def find_version(
    request: Request, reach: Reached, label: Annotated[Label, Query(description="As react@^18.")]
) -> Response:
    """The version of a source that a label means, and the versions there are."""
    return reply(request, await reach.kb.find_version(label))


@router.get("/sources/{number}/copies", response_model=SourceCopies)
async def copies_of_source(request: Request, reach: Reached, number: Id) -> Response:
    """How the pages of a source stand in external stores."""
    source = await reach.source(number)
    view = await reach.kb.show(source.label)
    return reply(request, {"source_id": source.id, "sinks": view.sinks or ()})


@router.get("/pages/{number}/copies", response_model=PageCopies)
async def copies_of_page(request: Request, reach: Reached, number: Id) -> Response:
    """The copies of a page in external stores."""
    page, _ = await reach.page(number)
    return reply(request, {"page_id": page.id, "copies": page.copies})
