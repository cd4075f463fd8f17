"""Routes about the server: `/health`, `/ready`, `/metrics`, and `/docs`, which loads nothing from other hosts."""

import asyncio
import gzip
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel

from afresh import __version__
from afresh.server.auth import allowed_of
from afresh.server.background import SCHEDULES, WORKER
from afresh.server.replies import as_json
from afresh.server.requests import Kb
from afresh.server.telemetry import MEDIA, exposition

health_router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The answer of the liveness check."""

    status: str
    version: str


class Ready(BaseModel):
    """The answer of the readiness check; `worker` and `schedules` say whether this process does that work."""

    status: str
    store: str
    worker: str  # "here", "resting" (after a failure) or "elsewhere"
    schedules: str  # one of the same three


@health_router.get("/health", response_model=Health)
async def health(request: Request) -> Response:
    """Liveness check: the process answers."""
    allowed_of(request.scope)  # open to everyone
    return Response(as_json({"status": "ok", "version": __version__}), media_type="application/json")


@health_router.get("/ready", response_model=Ready)
async def ready(request: Request, kb: Kb) -> Response:
    """Readiness check: the store answers; 503 if not."""
    allowed_of(request.scope)  # reveals no source
    await kb.status.ready()
    running = request.app.state.server.tasks
    body = {"status": "ok", "store": "ok"}
    body |= {name: running.get(name, "elsewhere") for name in (WORKER, SCHEDULES)}
    return Response(as_json(body), media_type="application/json")


@health_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Metrics in the Prometheus text format."}},
)
async def metrics(request: Request, kb: Kb) -> Response:
    """Return queue depth, rates, latency, model calls and sync states for Prometheus."""
    allowed_of(request.scope).check_everywhere()
    return Response(await exposition(kb.status, request.app.state.server.meter), media_type=MEDIA)


OPENAPI = "/api/v1/openapi.json"
# Swagger UI uses data: URLs for icons and inline styles.
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
PACKAGE = "fastapi_offline"  # read from disk, never imported
PACKED = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}

docs_router = APIRouter(include_in_schema=False)


@docs_router.get("/docs")
async def docs() -> Response:
    """Return the page with the documentation of the API."""
    page = files("afresh.server.web").joinpath("templates", "docs.html").read_bytes()
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})


@docs_router.get("/docs/start.js")
async def start() -> Response:
    """Return the script that starts Swagger UI."""
    script = files("afresh.server.web").joinpath("assets", "swagger.js").read_bytes()
    return Response(script, media_type="text/javascript")


@docs_router.get("/docs/{name}")
async def docs_asset(name: str, request: Request) -> Response:
    """Return a file of Swagger UI."""
    if name not in PACKED:
        raise HTTPException(404)
    headers = {"cache-control": "max-age=86400", "vary": "accept-encoding"}
    packed = await asyncio.to_thread(_packed, name)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=PACKED[name], headers={**headers, "content-encoding": "gzip"})
    return Response(gzip.decompress(packed), media_type=PACKED[name], headers=headers)


@cache
def _packed(name: str) -> bytes:
    if (spec := find_spec(PACKAGE)) is None or spec.origin is None:
        raise HTTPException(503, "/docs needs fastapi-offline. Run `pip install fastapi-offline`.")
    return gzip.compress((Path(spec.origin).parent / "static" / name).read_bytes(), mtime=0)
