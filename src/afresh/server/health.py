"""Whether the server lives, and whether it can work."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from afresh import __version__
from afresh.server.api.replies import as_json
from afresh.server.auth import allowed_of
from afresh.server.background import SCHEDULES, WORKER
from afresh.server.metrics import MEDIA, exposition
from afresh.server.parts import Kb

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The process answers."""

    status: str
    version: str


class Ready(BaseModel):
    """The store answers; who works on runs, and who starts those that are scheduled."""

    status: str
    store: str
    worker: str  # here, resting after it fell, or elsewhere
    schedules: str


@router.get("/health", response_model=Health)
async def health(request: Request) -> Response:
    """The process lives; nothing else is asked."""
    allowed_of(request.scope)  # open to all
    return Response(as_json({"status": "ok", "version": __version__}), media_type="application/json")


@router.get("/ready", response_model=Ready)
async def ready(request: Request, kb: Kb) -> Response:
    """The store answers, so that requests can be answered; 503 if not."""
    allowed_of(request.scope)  # tells of no source
    await kb.status.ready()
    who = request.app.state.desk.who
    body = {"status": "ok", "store": "ok", "worker": who(WORKER), "schedules": who(SCHEDULES)}
    return Response(as_json(body), media_type="application/json")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Numbers for Prometheus."}},
)
async def metrics(request: Request, kb: Kb) -> Response:
    """Queue depth, rates, latency, calls to models and copies, in the form that Prometheus reads."""
    allowed_of(request.scope).check_everywhere()
    return Response(await exposition(kb.status, request.app.state.desk.meter), media_type=MEDIA)
