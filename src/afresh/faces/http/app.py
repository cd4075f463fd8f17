"""The application: every route, what is mounted beside them, and its life."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, FastAPI

from afresh import __version__
from afresh.config import Config
from afresh.core.events import Event, Notice
from afresh.faces.http import docs_page, health, searching, sources
from afresh.faces.http.problems import RESPONSES, tell_problems
from afresh.kb import KnowledgeBase

log = logging.getLogger(__name__)

PREFIX = "/api/v1"
PAUSE = 5.0  # seconds before a worker that fell is put to work again
ABOUT = "Keeps a searchable knowledge base of documentation fresh, and pays only for what changed."
ROUTERS: tuple[APIRouter, ...] = (sources.router, searching.router)


class Desk:
    """What the application is at: whether it stops, and who works for it."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.worker = "elsewhere"  # runs are left to `afresh worker`


def make_app(kb: KnowledgeBase, config: Config, *, read_only: bool = False, works: bool = True) -> FastAPI:
    """The application over a knowledge base; where it `works`, it works on the runs that are open."""
    desk = Desk()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        worker = asyncio.create_task(_work(kb, desk)) if works and not read_only else None
        try:
            yield
        finally:
            stop(app)
            if worker is not None:
                await asyncio.wait({worker})

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
    return app


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


async def _work(kb: KnowledgeBase, desk: Desk) -> None:
    """Work on open runs until told to stop, whatever happens to one of them."""
    while not desk.stopping.is_set():
        desk.worker = "here"
        try:
            await kb.work(listener=_hear)
        except Exception:
            desk.worker = "resting"
            log.exception("the worker fell, and is put to work again in %.0f s", PAUSE)
            with suppress(TimeoutError):
                await asyncio.wait_for(desk.stopping.wait(), PAUSE)


def _hear(event: Event) -> None:
    """What a worker has to say goes into the log."""
    if isinstance(event, Notice):
        log.info("%s", event.text)
