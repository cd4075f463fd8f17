"""The application: every route, what is mounted beside them, and its life."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from afresh import __version__
from afresh.app import utc_now
from afresh.config import Config
from afresh.core.access import Allowed
from afresh.core.errors import AfreshError
from afresh.core.events import Event, Notice
from afresh.core.watching import Sight
from afresh.engine.pause import heard
from afresh.faces.http import (
    changes,
    docs_page,
    health,
    links,
    overview,
    pages,
    runs,
    schedules,
    searching,
    sources,
)
from afresh.faces.http.access import Door
from afresh.faces.http.metrics import Meter
from afresh.faces.http.problems import RESPONSES, tell_problems
from afresh.faces.http.webhooks import WebhookDoor
from afresh.faces.http.wire import App
from afresh.kb import KnowledgeBase

if TYPE_CHECKING:
    from afresh.faces.mcp.http import McpApp

log = logging.getLogger(__name__)

PREFIX = "/api/v1"
PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds before what fell is tried again, twice as many each time
WORKER, SCHEDULES = "worker", "schedules"
ABOUT = "Keeps a searchable knowledge base of documentation fresh, and pays only for what changed."
ROUTERS: tuple[APIRouter, ...] = (
    sources.router,
    pages.router,
    links.router,
    runs.router,
    schedules.router,
    searching.router,
    changes.router,
    overview.router,
)
Work: TypeAlias = Callable[[], Awaitable[object]]


class Desk:
    """What the application is at: whether it stops, and what it does by itself."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.at_work: dict[str, str] = {}  # what is done here, or rests after it fell
        self.meter: Meter | None = None

    def who(self, work: str) -> str:
        """Who does a kind of work: it is done here, rests, or is left to other processes."""
        return self.at_work.get(work, "elsewhere")

    def metered(self, app: App) -> Meter:
        """An application whose answers are counted."""
        self.meter = Meter(app)
        return self.meter


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
    mcp = _mcp(kb, config, read_only=read_only)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        tasks = [] if read_only else _tasks(kb, config, works=works, schedules=schedules)
        workers = {asyncio.create_task(_keep(desk, *task)) for task in tasks}
        try:
            async with mcp.running() if mcp else nullcontext():
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
    )
    app.state.kb, app.state.config, app.state.desk, app.state.read_only = kb, config, desk, read_only
    tell_problems(app)
    app.include_router(health.router)
    app.include_router(docs_page.router)
    for router in ROUTERS:
        app.include_router(_open_part(router) if read_only else router, prefix=PREFIX, responses=RESPONSES)
    if mcp:
        app.router.routes.append(Route("/mcp", mcp, include_in_schema=False))
    hooks = WebhookDoor(kb, config.webhooks, utc_now)
    app.add_middleware(Door, keeper=kb, settings=config.access, hooks=hooks)
    app.add_middleware(desk.metered)
    return app


def _mcp(kb: KnowledgeBase, config: Config, *, read_only: bool) -> "McpApp | None":
    """MCP, where its package is installed."""
    try:
        from afresh.faces.mcp.http import asgi_app
    except ModuleNotFoundError:
        return None

    def may_write(scope: MutableMapping[str, Any]) -> bool:
        allowed: Allowed = scope["state"]["allowed"]  # not marked as asked: tools look at no source
        return allowed.may_write

    return asgi_app(kb, read_only=read_only, hosts=config.access.hosts, may_write=may_write)


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


def _tasks(kb: KnowledgeBase, config: Config, *, works: bool, schedules: bool) -> Iterator[tuple[str, Work]]:
    """What the server does by itself, each by its name."""
    if works:
        yield WORKER, lambda: kb.work(listener=_hear)
    if works or schedules:
        yield "webhooks", lambda: kb.keep_promises(listener=_hear)
    if schedules:
        yield SCHEDULES, lambda: kb.keep_schedules(listener=_hear, queues=True)
    if schedules and config.sinks:
        yield "external stores", lambda: kb.keep_sinks(sorted(config.sinks), listener=_hear)
    if schedules and config.kb.in_use:
        yield "knowledge base", lambda: kb.watch_kb(tell=_see, listener=_hear)


async def _keep(desk: Desk, name: str, work: Work) -> None:
    """Go on until told to stop, or until there is nothing more to do, whatever happens."""
    pause = PAUSE
    while not desk.stopping.is_set():
        desk.at_work[name] = "here"
        try:
            await work()
        except AfreshError as error:
            log.warning("%s: %s; tried again in %.0f s", name, error, pause)
        except Exception:
            log.exception("%s: fell, and is tried again in %.0f s", name, pause)
        else:
            return
        desk.at_work[name] = "resting"
        await heard(desk.stopping, pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _see(sight: Sight) -> None:
    """Runs are told by the log in any case."""
    if isinstance(sight, Notice):
        _hear(sight)


def _hear(event: Event) -> None:
    """What a worker has to say goes into the log."""
    if isinstance(event, Notice):
        log.info("%s", event.text)
