"""Sources: what is kept fresh."""

from fastapi import APIRouter, Request, Response

from afresh.core.views import SourceView
from afresh.faces.http.parts import Kb
from afresh.faces.http.replies import reply

router = APIRouter(tags=["sources"])


@router.get("/sources", response_model=list[SourceView])
async def sources(request: Request, kb: Kb) -> Response:
    """All sources with their numbers."""
    return reply(request, await kb.sources())
