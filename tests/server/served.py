"""A server on a real port of this machine, and a client that asks it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from tests.e2e.library import settings

from afresh.app import build
from afresh.config import Config
from afresh.server.app import make_app
from afresh.server.uvicorn_server import Server

GOING = ("queued", "running")


class Client:
    """Asks a server, and waits for runs by their events."""

    def __init__(self, session: aiohttp.ClientSession, server: Server) -> None:
        self.session = session
        self.server = server

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        async with self.session.request(method, path, **more) as answer:
            text = await answer.text()
            return answer.status, await answer.json(content_type=None) if text else None

    async def get(self, path: str, **more: Any) -> Any:
        """What is read with 200."""
        status, content = await self.ask("GET", path, **more)
        assert status == 200, content
        return content

    async def events(self, run: int) -> list[str]:
        """The events of a run until it ends."""
        async with self.session.get(f"/api/v1/runs/{run}/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            return (await answer.text()).strip().split("\n\n")

    async def under_way(self, run: int, beyond: int = 0) -> None:
        """Wait until a run is worked on and has looked at more pages."""
        async with self.session.get(f"/api/v1/runs/{run}/events") as answer:
            async for line in answer.content:
                if line.startswith(b"data: "):
                    content = json.loads(line.removeprefix(b"data: "))
                    if content["state"] == "running" and content["checked"] > beyond:
                        return
        raise AssertionError("it ended before it began")


@asynccontextmanager
async def served(
    store: Path | str,
    *,
    read_only: bool = False,
    works: bool = True,
    schedules: bool = False,
    config: Config | None = None,
) -> AsyncIterator[Client]:
    """A server over a store, while it is open."""
    kb = await build(config or settings(Path(store)))
    try:
        given = config or settings(Path(store))
        app = make_app(kb, given, read_only=read_only, works=works, schedules=schedules)
        server = Server(app, "127.0.0.1", 0)
        serving = asyncio.create_task(server.work())
        try:
            async with aiohttp.ClientSession(server.url) as session:
                yield Client(session, server)
        finally:
            server.leave()
            await serving
    finally:
        await kb.close()
