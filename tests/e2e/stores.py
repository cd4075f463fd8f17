"""A knowledge base with an external store attached, on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tests.e2e.library import settings
from tests.fakes.gemini_server import KEY, GeminiServer

from afresh.app import build
from afresh.config.server import SinkSettings
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock

STORE = "Team docs"


@asynccontextmanager
async def attached(
    store: Path, server: GeminiServer, clock: FrozenClock | None = None, *, order: str = "delete_first"
) -> AsyncIterator[KnowledgeBase]:
    """The knowledge base on a store file, its pages to be copied to Gemini File Search."""
    team = SinkSettings(
        kind="gemini", store=STORE, api_key=KEY, base_url=server.base_url, replace=order, wait_seconds=0.0
    )
    config = replace(settings(store), sinks={"team": team})
    kb = await (build(config, clock=clock) if clock else build(config))
    try:
        yield kb
    finally:
        await kb.close()


def texts(server: GeminiServer) -> dict[str, str]:
    """The documents of the server by the address of their page; two of one page are an error."""
    found: dict[str, str] = {}
    for each in server.documents:
        url = str(each.values["url"])
        assert url not in found, f"{url} is there twice"
        found[url] = each.text
    return found
