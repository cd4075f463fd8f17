"""The FastAPI application with its routes, mounted applications and lifespan."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from starlette.routing import Route

from afresh import __version__
from afresh.app import utc_now
from afresh.config import Config
from afresh.errors import AfreshError
from afresh.kb import KnowledgeBase
from afresh.ops import tracing
from afresh.server import own_routes, web
from afresh.server.api import links, overview, pages, runs, search, sources
from afresh.server.asgi import MCP, PREFIX, Receive, RequestRefused, Scope, Send
from afresh.server.auth import AuthMiddleware, FailedLogins, allowed_of
from afresh.server.background import ServerState, keep, tasks
from afresh.server.mcp.http import asgi_app
from afresh.server.replies import RESPONSES, tell_problems
from afresh.server.request_checks import RateLimiter
from afresh.server.telemetry import TracingMiddleware
from afresh.server.web.frame import trouble
from afresh.server.webhooks import WebhookReceiver

ABOUT = "Keeps a searchable knowledge base of documentation fresh, and pays only for what changed."
# FastAPI would record queries and error messages unredacted; `TracingMiddleware` records what is safe.
UNTOLD: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
BEARER = HTTPBearer(  # only for the OpenAPI document: `AuthMiddleware` checks tokens
    scheme_name="token", description="`afresh token create` makes one.", auto_error=False
)
ROUTERS: tuple[APIRouter, ...] = (
    sources.router,
    pages.router,
    links.router,
    runs.router,
    sources.schedules_router,
    search.router,
    pages.changes_router,
    overview.router,
    overview.charts_router,
)


def make_app(
    kb: KnowledgeBase, config: Config, *, read_only: bool = False, works: bool = True, schedules: bool = False
) -> FastAPI:
    """Return the application of a knowledge base.

    With `works`, it works on open runs. With `schedules`, it starts scheduled runs, syncs and updates of the
    digest.
    """
    desk = ServerState()
    mcp = asgi_app(kb, read_only=read_only, hosts=None, allowed=allowed_of)  # `AuthMiddleware` checks hosts

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        own = () if read_only else tasks(kb, config, works=works, schedules=schedules)
        workers = {asyncio.create_task(keep(desk, *task)) for task in own}
        try:
            async with _counting(kb), mcp.running():
                yield
        finally:
            stop(app)
            if workers:
                await asyncio.wait(workers)

    app = FastAPI(
        title="afresh",
        version=__version__,
        description=ABOUT,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url=own_routes.OPENAPI,
        redirect_slashes=False,
        telemetry=UNTOLD,
    )
    app.state.kb, app.state.config, app.state.desk, app.state.read_only = kb, config, desk, read_only
    _add_routes(app, read_only=read_only)
    app.router.routes.append(Route(MCP, mcp, include_in_schema=False))
    app.state.guesses = RateLimiter(config.access.requests_per_second, config.access.burst)
    hooks = None if read_only else WebhookReceiver(kb.webhooks, config.webhooks, utc_now)
    app.state.failures = failures = FailedLogins()
    app.add_middleware(
        AuthMiddleware,
        tokens=kb.tokens,
        settings=config.access,
        hooks=hooks,
        logins=True,
        page=_refusal,
        failures=failures,
    )
    app.add_middleware(desk.metered)
    if recorder := tracing.recorder():
        app.add_middleware(TracingMiddleware, recorder=recorder)
    return app


def _add_routes(app: FastAPI, *, read_only: bool) -> None:
    tell_problems(app, trouble)
    app.include_router(own_routes.health_router)
    app.include_router(own_routes.docs_router)
    for page in web.OPEN:
        app.include_router(page)
    for page in web.ROUTERS:
        app.include_router(_open_part(page) if read_only else page)
    for router in ROUTERS:
        part = _open_part(router) if read_only else router
        app.include_router(part, prefix=PREFIX, responses=RESPONSES, dependencies=[Depends(BEARER)])


async def _refusal(scope: Scope, receive: Receive, send: Send, refused: RequestRefused) -> None:
    answer = trouble(Request(scope), refused.status, refused.detail)
    answer.headers.update(refused.headers)
    await answer(scope, receive, send)


def stop(app: FastAPI) -> None:
    """Stop the background tasks and the event streams."""
    app.state.desk.stopping.set()
    app.state.kb.stop()


def _open_part(router: APIRouter) -> APIRouter:
    """Return a router with the read-only routes."""
    part = APIRouter()
    part.routes.extend(
        route for route in router.routes if getattr(route, "methods", set()) <= {"GET", "HEAD"}
    )
    return part


@asynccontextmanager
async def _counting(kb: KnowledgeBase) -> AsyncIterator[None]:
    """Cache the counts of large sources, and count them at startup so that the first request is fast."""
    kb.status.cache_counts()

    async def count() -> None:
        with suppress(AfreshError):
            await kb.sources.overviews(await kb.sources.all())

    task = asyncio.create_task(count())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
