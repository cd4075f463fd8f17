"""The whole API, asked as its document allows and as it does not; the long run is `python -m soak api`."""

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from soak.api import fuzz, naughty, served, texts
from starlette.types import ASGIApp as App
from tests.e2e.library import settings
from tests.server.asking import ask
from tests.server.closed import Tokens, prove_closed

from afresh.access.permissions import TokenScope
from afresh.app import build
from afresh.server import web
from afresh.server.app import make_app
from afresh.testing import FrozenClock, TinySite

EACH = 3  # requests of each operation
STEP = 64  # every so many of the naughty strings


def web_routes(router: APIRouter) -> Iterator[tuple[str, str]]:
    """Method and path of every page, its parameters filled in."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            for method in route.methods or ():
                yield method, re.sub(r"\{[^}]*\}", "1", route.path)


@pytest.mark.slow
def test_F105_F106_no_request_makes_the_server_fall(tmp_path: Path, site: TinySite, shared: Path) -> None:
    with served(settings(tmp_path / "kb.db"), site.url) as (url, document):
        content = asyncio.run(naughty(url, document, texts()[::STEP]))
        content += fuzz(url, document, EACH, chance=7)
    assert content.total() > 250
    assert {name: number for name, number in content.items() if name.startswith(("5", "wrong"))} == {}
    assert content["200"] > 50


async def test_F102_F103_every_route_of_the_server_is_closed(tmp_path: Path) -> None:
    clock = FrozenClock()
    config = settings(tmp_path / "kb.db", {"access.requests_per_second": 100_000, "access.burst": 1_000_000})
    kb = await build(config, clock=clock)
    try:
        read, dead = [await kb.tokens.create(TokenScope.READ) for _ in range(2)]
        late = await kb.tokens.create(TokenScope.WRITE, expires=timedelta(hours=1))
        await kb.tokens.revoke(dead.id)
        clock.advance(hours=2)
        app = make_app(kb, config, works=False)
        more = [("POST", "/mcp"), ("GET", "/docs"), ("GET", "/docs/start.js"), ("GET", "/nowhere")]
        more += [place for router in web.ROUTERS for place in web_routes(router)]
        assert ("POST", "/sources/1/refresh") in more
        served_app: App = app
        known = Tokens(read=read.token, dead=[dead.token, late.token, "afresh_madeup", ""])
        assert await prove_closed(served_app, app.openapi(), known, more) > 30
    finally:
        await kb.close()


async def test_F102_a_token_bound_to_a_source_sees_nothing_else(tmp_path: Path, site: TinySite) -> None:
    config = settings(tmp_path / "kb.db", {"crawl.max_pages": 3})
    kb = await build(config)
    try:
        for name in ("open", "closed"):
            await kb.runs.crawl(site.url, name=name)
        await kb.schedules.set_rule(await kb.sources.labelled([]), "@daily")
        token = (await kb.tokens.create(TokenScope.READ, sources=["open"])).token
        app: App = make_app(kb, config, works=False)

        async def content(path: str) -> tuple[int, object]:
            answered = await ask(app, "GET", f"/api/v1/{path}", token=token)
            return answered.status, answered.json

        hidden = (await kb.sources.view("closed")).id
        page = next(each for each in await kb.pages.records([hidden], limit=1))
        link = next(each for each in await kb.links.records([hidden], limit=1))
        run = (await kb.sources.view("closed")).last_run
        for path in (f"sources/{hidden}", f"pages?source={hidden}", f"pages/{page.id}", f"links/{link.id}"):
            assert (await content(path))[0] == 404, path
        for path in (f"runs/{run}", f"runs/{run}/events", f"pages/{page.id}/links", "search?q=a&in=closed"):
            assert (await content(path))[0] == 404, path
        for path in (f"sources/{hidden}/schedule", f"sources/{hidden}/due", f"sources/{hidden}/copies"):
            assert (await content(path))[0] == 404, path
        for path in ("map", "calendar", "hosts", "ahead", "receipt"):
            assert (await content(f"sources/{hidden}/{path}"))[0] == 404, path
            assert (await content(f"sources/{(await kb.sources.view('open')).id}/{path}"))[0] == 200, path
        _, year = await content("calendar")
        assert isinstance(year, dict)
        assert year["changes"] == 3
        assert (await content("hosts"))[0] == 403
        for path in ("versions?label=closed", "versions?label=close", "search?q=a&in=close"):
            status, answer = await content(path)
            assert (status, "did you mean" in str(answer)) == (404, False), path
        assert (await content("status"))[0] == 403
        for path in ("sources", "pages", "links", "runs", "changes", "schedules"):
            status, answer = await content(path)
            assert status == 200
            assert isinstance(answer, dict)
            visible = {each.get("source_id", each.get("source", each.get("name"))) for each in answer["items"]}
            assert visible <= {"open", (await kb.sources.view("open")).id}, path
            assert visible
        status, answer = await content("search?q=harbor")
        assert isinstance(answer, dict)
        assert {hit["source"] for hit in answer["hits"]} <= {"open"}

        for path in (f"/sources/{hidden}", f"/sources/{hidden}/links", f"/pages/{page.id}", f"/sources/{hidden}/map"):
            assert (await ask(app, "GET", path, token=token)).status == 404, path
        for path in (f"/open?in=closed&url={page.url}", "/search?q=a&in=closed", f"/live?source={hidden}"):
            assert (await ask(app, "GET", path, token=token)).status == 404, path
        for path in ("/", "/changes", "/search?q=harbor"):
            answered = await ask(app, "GET", path, token=token)
            assert (answered.status, b"closed" in answered.body) == (200, False), path
            assert b"open" in answered.body
    finally:
        await kb.close()
