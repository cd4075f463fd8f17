"""The application: every route, what is mounted beside them, and its life."""

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
from afresh.server import docs_page, health
from afresh.server.api import changes, charts, links, overview, pages, runs, schedules, search, sources
from afresh.server.asgi import MCP, PREFIX, Receive, Refused, Scope, Send
from afresh.server.auth import Door, allowed_of
from afresh.server.background import Desk, keep, tasks
from afresh.server.failures import FailedLogins
from afresh.server.limits import Buckets
from afresh.server.mcp.http import asgi_app
from afresh.server.problems import RESPONSES, tell_problems
from afresh.server.tracing import Traced
from afresh.server.web import site as web
from afresh.server.webhooks import WebhookDoor

ABOUT = "Keeps a searchable knowledge base of documentation fresh, and pays only for what changed."
# FastAPI would tell queries and messages of errors as they are; `tracing.py` tells what may be told.
UNTOLD: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
BEARER = HTTPBearer(  # for the document alone: `Door` looks at tokens
    scheme_name="token", description="`afresh token create` makes one.", auto_error=False
)
ROUTERS: tuple[APIRouter, ...] = (
    sources.router,
    pages.router,
    links.router,
    runs.router,
    schedules.router,
    search.router,
    changes.router,
    overview.router,
    charts.router,
)


def make_app(
    kb: KnowledgeBase,
    config: Config,
    *,
    read_only: bool = False,
    works: bool = True,
    schedules: bool = False,
) -> FastAPI:
    """The application over a knowledge base; where it `works`, it works on the runs that are open.

    With `schedules` it starts what is to be done by itself: runs, syncs, updates of the files' index.
    """
    desk = Desk()
    mcp = asgi_app(kb, read_only=read_only, hosts=None, allowed=allowed_of)  # names: see Door

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
        openapi_url=docs_page.OPENAPI,
        redirect_slashes=False,
        telemetry=UNTOLD,
    )
    app.state.kb, app.state.config, app.state.desk, app.state.read_only = kb, config, desk, read_only
    _add_routes(app, read_only=read_only)
    app.router.routes.append(Route(MCP, mcp, include_in_schema=False))
    app.state.guesses = Buckets(config.access.requests_per_second, config.access.burst)
    hooks = None if read_only else WebhookDoor(kb.webhooks, config.webhooks, utc_now)
    app.state.failures = failures = FailedLogins()
    app.add_middleware(
        Door,
        tokens=kb.tokens,
        settings=config.access,
        hooks=hooks,
        logins=True,
        page=_refusal,
        failures=failures,
    )
    app.add_middleware(desk.metered)
    if recorder := tracing.recorder():
        app.add_middleware(Traced, recorder=recorder)
    return app


def _add_routes(app: FastAPI, *, read_only: bool) -> None:
    tell_problems(app, web.trouble)
    app.include_router(health.router)
    app.include_router(docs_page.router)
    for page in web.OPEN:
        app.include_router(page)
    for page in web.ROUTERS:
        app.include_router(_open_part(page) if read_only else page)
    for router in ROUTERS:
        part = _open_part(router) if read_only else router
        app.include_router(part, prefix=PREFIX, responses=RESPONSES, dependencies=[Depends(BEARER)])


async def _refusal(scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
    """What the door says, as a page."""
    answer = web.trouble(Request(scope), refused.status, refused.detail)
    answer.headers.update(refused.headers)
    await answer(scope, receive, send)


def stop(app: FastAPI) -> None:
    """Have everything end soon that goes on by itself: the worker, and streams of events."""
    app.state.desk.stopping.set()
    app.state.kb.stop()


def _open_part(router: APIRouter) -> APIRouter:
    """The routes that only read."""
    part = APIRouter()
    part.routes.extend(
        route for route in router.routes if getattr(route, "methods", set()) <= {"GET", "HEAD"}
    )
    return part


@asynccontextmanager
async def _counting(kb: KnowledgeBase) -> AsyncIterator[None]:
    """Numbers of large sources are kept, and counted at once: who looks first does not wait for them."""
    kb.status.cache_counts()
    task = asyncio.create_task(_count_all(kb))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _count_all(kb: KnowledgeBase) -> None:
    with suppress(AfreshError):
        await kb.sources.overviews(await kb.sources.all())
