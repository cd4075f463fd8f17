"""The FastAPI application with its routes, mounted applications and lifespan."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from afresh import __version__
from afresh.app import utc_now
from afresh.config import Config
from afresh.errors import AfreshError
from afresh.kb import KnowledgeBase
from afresh.ops import tracing
from afresh.server import own_routes, web
from afresh.server.api import links, overview, pages, runs, search, sources
from afresh.server.asgi import MCP, PREFIX, RequestRefused
from afresh.server.auth import AuthMiddleware, FailedLogins, allowed_of
from afresh.server.background import ServerState, run_task, tasks
from afresh.server.mcp.http import McpApp
from afresh.server.replies import RESPONSES, add_error_handlers
from afresh.server.request_checks import RateLimiter
from afresh.server.telemetry import TracingMiddleware
from afresh.server.web.frame import show_error
from afresh.server.webhooks import WebhookReceiver

DESCRIPTION = "A searchable index of documentation that refreshes itself and processes only what changed."
# FastAPI would record queries and error messages unredacted; `TracingMiddleware` records what is safe.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
BEARER = HTTPBearer(  # only describes tokens in the OpenAPI document; `AuthMiddleware` checks them
    scheme_name="token", description="Create one with `afresh token create`.", auto_error=False
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
    """Return the web application, with web interface, REST and MCP.

    With `works`, the application processes open runs. With `schedules`, it starts scheduled runs and syncs, and keeps
    the `index.txt` of `init-kb` up to date.
    """
    state = ServerState()
    mcp = McpApp(kb, read_only=read_only, allowed=allowed_of)
    failures = FailedLogins()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        own = () if read_only else tasks(kb, config, works=works, schedules=schedules)
        workers = {asyncio.create_task(run_task(state, *task)) for task in own}
        try:
            async with _cached_counts(kb), mcp.running():
                yield
        finally:
            stop(app)
            if workers:
                await asyncio.wait(workers)

    app = FastAPI(
        title="afresh",
        version=__version__,
        description=DESCRIPTION,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url=own_routes.OPENAPI,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    app.state.kb, app.state.config, app.state.server, app.state.read_only = kb, config, state, read_only
    app.state.failures = failures
    app.state.guesses = RateLimiter(config.access.requests_per_second, config.access.burst)
    _add_routes(app, read_only=read_only)
    app.router.routes.append(Route(MCP, mcp, include_in_schema=False))
    hooks = None if read_only else WebhookReceiver(kb.webhooks, config.webhooks, config.access, utc_now)
    app.add_middleware(
        AuthMiddleware, tokens=kb.tokens, settings=config.access, hooks=hooks, page=_refuse, failures=failures
    )
    app.add_middleware(state.add_meter)
    if recorder := tracing.get_recorder():
        app.add_middleware(TracingMiddleware, recorder=recorder)
    return app


def _add_routes(app: FastAPI, *, read_only: bool) -> None:
    add_error_handlers(app, show_error)
    for open_router in (own_routes.health_router, own_routes.docs_router, *web.OPEN):
        app.include_router(open_router)
    for page in web.ROUTERS:
        app.include_router(_reading_part(page) if read_only else page)
    for router in ROUTERS:
        part = _reading_part(router) if read_only else router
        app.include_router(part, prefix=PREFIX, responses=RESPONSES, dependencies=[Depends(BEARER)])


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: RequestRefused) -> None:
    answer = show_error(Request(scope), refused.status, refused.detail)
    answer.headers.update(refused.headers)
    await answer(scope, receive, send)


def stop(app: FastAPI) -> None:
    app.state.server.stopping.set()
    app.state.kb.stop()


def _reading_part(router: APIRouter) -> APIRouter:
    part = APIRouter()
    part.routes.extend(route for route in router.routes if getattr(route, "methods", set()) <= {"GET", "HEAD"})
    return part


@asynccontextmanager
async def _cached_counts(kb: KnowledgeBase) -> AsyncIterator[None]:
    """Cache how many pages and passages large sources have; count at startup, so that the first request is fast."""
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
