"""A token that is bound to a source, at /mcp: nothing of any other source can be found, read or changed."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened
from tests.e2e.sites import page
from tests.server.served import Client as Server
from tests.server.served import served

from afresh.access.permissions import TokenScope
from afresh.testing import TinySite

SECRET, LOOKALIKE = "zirconium", "qirconium"  # what is hidden, and what was never there


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read without processes of their own."""
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)


def lay(site: TinySite, more: str = "") -> None:
    """One source that may be seen, and four that hold the secret word."""
    site.put("/mine/", page("Mine", ["/mine/guide", "/mine/leaves"], f"open words{more}"))
    site.put("/mine/guide", page("Guide", [f"/{SECRET}/far"], f"how to retry{more}"))
    site.redirect("/mine/leaves", f"/{SECRET}/far")
    for root in (f"/{SECRET}/", f"/v3-{SECRET}/", f"/part-{SECRET}/", f"/near-{SECRET}/"):
        site.put(root, page(f"All of {SECRET}", [f"{root}far"], f"{SECRET} retry open words{more}"))
        site.put(f"{root}far", page(f"Far {SECRET}", [], f"{SECRET} guide{more}"))


async def fill(store: Path, site: TinySite) -> str:
    """Crawl all twice; a token for the one."""
    async with opened(store) as kb:
        for more in ("", " and more"):
            lay(site, more)
            await kb.runs.crawl(site.at("/mine/"), name="docs", version="2")
            await kb.runs.crawl(site.at(f"/v3-{SECRET}/"), name="docs", version="3")
            await kb.runs.crawl(site.at(f"/part-{SECRET}/"), name="docs/part", version="3")
            await kb.runs.crawl(site.at(f"/near-{SECRET}/"), name=f"docs-{SECRET}")
            await kb.runs.crawl(site.at(f"/{SECRET}/"), name=SECRET)
        await kb.runs.refresh([SECRET], queue=True)
        return (await kb.tokens.create(TokenScope.WRITE, sources=["docs@2"])).token


@asynccontextmanager
async def asking(url: str, token: str) -> AsyncIterator[Client]:
    """The official client with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with create_mcp_http_client(headers) as http, Client(streamable_http_client(url, http_client=http)) as client:
        yield client


async def call_text(client: Client, tool: str, **arguments: Any) -> str:
    """Everything that a call brings, without what differs each time."""
    if tool == "resource":
        try:
            answer = await client.read_resource(arguments["uri"])
        except MCPError as error:
            return f"error {error}"
        return answer.model_dump_json()
    result = await client.call_tool(tool, arguments)
    return ("error " if result.is_error else "") + result.model_dump_json(by_alias=True)


def calls(site: TinySite, jobs: dict[str, int]) -> list[tuple[str, dict[str, Any]]]:
    """Every way to ask for what is hidden by its name, address or number."""
    root, word, job = site.at(f"/{SECRET}/"), SECRET, jobs[SECRET]
    return [
        ("search_docs", {"query": "retry", "library": word}),
        ("search_docs", {"query": "retry", "library": f"docs-{word}"}),
        ("find_version", {"library": word}),
        ("what_changed", {"library": word}),
        ("list_jobs", {"library": word}),
        ("get_job_info", {"jobId": job}),
        ("fetch_url", {"url": root}),
        ("fetch_url", {"url": f"{root}far"}),
        ("scrape_docs", {"url": root}),
        ("scrape_docs", {"url": root, "library": word}),
        ("scrape_docs", {"url": root, "library": f"docs-{word}"}),
        ("scrape_docs", {"url": site.at("/mine/"), "library": word}),
        ("refresh_version", {"library": word}),
        ("cancel_job", {"jobId": job}),
        ("remove_docs", {"library": word}),
        ("resource", {"uri": f"afresh://library/{word}"}),
        ("resource", {"uri": f"afresh://page/{root}"}),
    ]


OPEN: list[tuple[str, dict[str, Any], str]] = [
    ("search_docs", {"query": "retry guide open words", "limit": 50}, "/mine/guide"),
    ("search_docs", {"query": '"open words"', "library": "docs"}, "/mine/"),
    ("search_docs", {"query": "retry", "library": "docs", "version": "^2"}, "/mine/guide"),
    ("search_docs", {"query": "retry", "library": "docs", "version": "latest"}, "/mine/guide"),
    ("list_libraries", {}, "docs@2"),
    ("find_version", {"library": "docs"}, '"versions":["2"]'),
    ("what_changed", {"limit": 100}, "/mine/guide"),
    ("list_jobs", {}, '"jobId":1'),
    ("get_job_info", {"jobId": 1}, "completed"),
    ("resource", {"uri": "afresh://library/docs@2"}, "/mine/guide"),
]


async def test_F102_a_bound_token_finds_nothing_of_other_sources_by_any_tool(tmp_path: Path) -> None:
    store = tmp_path / "kb.db"
    with TinySite() as site:
        token = await fill(store, site)
        async with opened(store) as kb:
            jobs = {SECRET: max(run.run for run in await kb.runs.records(await kb.sources.ids(SECRET))), LOOKALIKE: 99}
            before = [await kb.sources.view(label) for label in (SECRET, "docs@3", "docs/part@3")]
        async with served(store, works=False) as server, asking(f"{server.server.url}/mcp", token) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            asked = {tool for tool, _ in calls(site, jobs)} | {tool for tool, _, _ in OPEN}
            assert asked - {"resource"} == tools
            await _shows_what_is_open(client, site)
            for tool, arguments in calls(site, jobs):
                await _looks_like_nothing(client, tool, arguments, jobs)
            await _changes_what_is_open(client, site)
            await _is_called_by_its_names(server, token)
        async with opened(store) as kb:
            assert [await kb.sources.view(label) for label in (SECRET, "docs@3", "docs/part@3")] == before
            assert (await kb.runs.get(jobs[SECRET])).state == "queued"
            assert {view.name for view in await kb.sources.views()} == {"docs", "docs/part", f"docs-{SECRET}", SECRET}


async def _shows_what_is_open(client: Client, site: TinySite) -> None:
    own = [
        ("fetch_url", {"url": site.at("/mine/guide")}, "how to retry"),
        ("resource", {"uri": f"afresh://page/{site.at('/mine/')}"}, "open words"),
        ("resource", {"uri": f"afresh://page/{site.at('/mine/guidf')}"}, "/mine/guide"),
    ]
    for tool, arguments, expected in [*OPEN, *own]:
        answer = await call_text(client, tool, **arguments)
        assert expected in answer, (tool, arguments, answer)
        visible = answer.replace(f"to /{SECRET}/far", "").replace(site.at(f"/{SECRET}/far"), "")  # its own link
        assert SECRET not in visible, (tool, arguments, answer)
    listed = [str(each.uri) for each in (await client.list_resources()).resources]
    assert listed == ["afresh://library/docs@2"]
    leaves = await call_text(client, "fetch_url", url=site.at("/mine/leaves"))
    assert "does not belong to the sources" in leaves
    assert "guide" not in leaves


async def _looks_like_nothing(client: Client, tool: str, arguments: dict[str, Any], jobs: dict[str, int]) -> None:
    """The answer is the one that is given for what was never there."""
    lookalike = json.loads(json.dumps(arguments).replace(SECRET, LOOKALIKE))
    if "jobId" in lookalike:
        lookalike["jobId"] = jobs[LOOKALIKE]
    hidden, nothing = await call_text(client, tool, **arguments), await call_text(client, tool, **lookalike)
    assert nothing.startswith("error "), (tool, arguments, nothing)
    same = re.sub(rf"\b{jobs[SECRET]}\b", str(jobs[LOOKALIKE]), hidden) if "jobId" in lookalike else hidden
    assert same.replace(SECRET, LOOKALIKE) == nothing, (tool, arguments)


async def _is_called_by_its_names(server: Server, token: str) -> None:
    """The door lets in and keeps out at /mcp as everywhere."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    given = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"}
    for more, status in (
        ({}, 200),
        ({"Host": "192.0.2.7:8000"}, 200),  # by its address, as others on the network do
        ({"Host": "192.0.2.7", "Origin": "http://192.0.2.7"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8000"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": "Bearer afresh_no"}, 401),
    ):
        async with server.session.post("/mcp", json=body, headers={**given, **more}) as answer:
            assert answer.status == status, (more, await answer.text())


async def _changes_what_is_open(client: Client, site: TinySite) -> None:
    again = json.loads(await call_text(client, "scrape_docs", url=site.at("/mine/"), version="2", maxPages=7))
    job = again["structuredContent"]["jobId"]
    assert "cancelled" in await call_text(client, "cancel_job", jobId=job)
    assert '"queued"' in await call_text(client, "refresh_version", library="docs", version="2")
    for version in ("3", "4"):
        another = {"url": site.at("/mine/"), "library": "docs", "version": version}
        assert "docs@2 has" in await call_text(client, "scrape_docs", **another)
        assert "cannot add another" in await call_text(client, "scrape_docs", **another, again=True)
    assert '"pages":2' in await call_text(client, "remove_docs", library="docs", version="2")
    assert '"libraries":[]' in await call_text(client, "list_libraries")
    assert '"results":[]' in await call_text(client, "search_docs", query="retry guide open words")
