"""The same URL twice: refused with the name of the source that has it, unless that is asked for."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from mcp import Client
from selectolax.lexbor import LexborHTMLParser
from tests.e2e.library import settings, url_of
from tests.e2e.sites import lay
from tests.server.asking import ask

from afresh.cli import main
from afresh.errors import AlreadyExists
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.server.mcp.server import make_server
from afresh.testing import TinySite

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "text/html"}


async def test_R5_G18_a_url_that_a_source_has_is_refused_with_its_name(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/docs/": []})
    url = tiny.at("/docs/")
    await kb.runs.crawl(url, name="docs", again=False)
    for name, version in (("other", None), ("docs", "2"), (None, "2")):
        with pytest.raises(AlreadyExists, match=r"docs has .*set `again`"):
            await kb.runs.crawl(url, name=name, version=version, again=False)
    assert [source.name for source in await kb.sources.views()] == ["docs"]
    for name in (None, "docs"):  # the same command goes on with the same source
        assert (await kb.runs.crawl(url, name=name, again=False)).source == "docs"
    await kb.runs.crawl(url, name="docs", version="2", again=True)
    assert len(await kb.sources.views()) == 2


async def test_R5_G18_the_form_asks_before_it_adds_a_url_again(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/docs/": []})
    await kb.runs.crawl(tiny.at("/docs/"), name="docs")
    app = make_app(kb, settings(store), works=False)
    form = {"do": "add", "target": tiny.at("/docs/"), "name": "other"}
    asked = await ask(app, "POST", "/add", FORM, body=urlencode(form).encode())
    page = LexborHTMLParser(asked.body.decode())
    box, wrong = page.css_first("input[type=checkbox][name=again]"), page.css_first("#wrong")
    assert (asked.status, box is not None, wrong is not None) == (422, True, True)
    assert "already has this URL" in wrong.text()  # type: ignore[union-attr]
    assert "--again" not in wrong.text()  # type: ignore[union-attr]
    assert "checked" not in box.attributes  # type: ignore[union-attr]
    assert [source.name for source in await kb.sources.views()] == ["docs"]
    empty = await ask(app, "GET", "/add", FORM)
    assert b'name="again"' not in empty.body
    added = await ask(app, "POST", "/add", FORM, body=urlencode({**form, "again": "yes"}).encode())
    assert (added.status, added.headers["location"].startswith("/runs/")) == (303, True)
    assert [source.name for source in await kb.sources.views()] == ["docs", "other"]


async def test_R5_C16_rest_answers_409_and_lists_one_per_source(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/docs/": []})
    await kb.runs.crawl(tiny.at("/docs/"), name="docs")
    app = make_app(kb, settings(store), works=False)
    request = {"target": tiny.at("/docs/"), "name": "other", "run": False}
    refused = await ask(app, "POST", "/api/v1/sources", JSON, body=json.dumps(request).encode())
    assert (refused.status, "docs" in refused.json["detail"]) == (409, True)
    assert "set `again` to add the URL once more" in refused.json["detail"]
    assert "--again" not in refused.json["detail"]
    async with Client(make_server(kb, works=False)) as client:
        answer = await client.call_tool("scrape_docs", {"url": tiny.at("/docs/"), "library": "other"})
        reported = " ".join(getattr(each, "text", "") for each in answer.content)
        assert (answer.is_error, "docs has" in reported, "`again`" in reported, "--again" in reported) == (
            True,
            True,
            True,
            False,
        )
    again = await ask(app, "POST", "/api/v1/sources", JSON, body=json.dumps({**request, "again": True}).encode())
    assert again.status == 201
    found = (await ask(app, "GET", f"/api/v1/sources?url={tiny.at('/docs/')}")).json["items"]
    assert [each["name"] for each in found] == ["docs", "other"]


async def test_U3_R5_the_command_line_names_its_flags_and_the_version_that_is_chosen(
    kb: KnowledgeBase, tiny: TinySite, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(tiny, {"/docs/": []})
    url = tiny.at("/docs/")
    await kb.runs.crawl(url, name="harbor", version="2")
    for name, advice in (
        ("other", f"harbor@2 has {url} already: refresh that source, or give --again to add the URL once more"),
        (
            "harbor",
            f"harbor@2 has {url} already: give --version 2 or refresh harbor@2 if you mean that one, "
            "or give --again to add the URL once more",
        ),
    ):
        command = ["crawl", url, "--name", name, "--store", url_of(store)]
        assert await asyncio.to_thread(main, command) == 2
        assert advice in capsys.readouterr().err
    app = make_app(kb, settings(store), works=False)
    request = {"target": url, "name": "harbor", "run": False}
    refused = await ask(app, "POST", "/api/v1/sources", JSON, body=json.dumps(request).encode())
    assert "give `version` 2 or refresh harbor@2 if you mean that one" in refused.json["detail"]


async def test_U4_history_of_a_url_in_two_sources_is_reported_source_by_source(
    kb: KnowledgeBase, tiny: TinySite, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(tiny, {"/docs/": []})
    url = tiny.at("/docs/")
    await kb.runs.crawl(url, name="docs", version="1")
    await kb.runs.crawl(url, name="other", again=True)
    await kb.runs.refresh(["docs@1"])
    whole = await kb.pages.history(url)
    reported = [(each.source, each.version) for each in whole]
    assert reported == sorted(reported, key=reported.index), "no source is told in two parts"
    assert set(reported) == {("docs", "1"), ("other", None)}
    ended = [(each.source, each.outcome) for each in whole if each.outcome]
    assert sorted(ended) == [("docs", "not_modified"), ("docs", "success"), ("other", "success")]
    for label, number in (("docs@1", 2), ("other", 1)):
        mine = await kb.pages.history(url, within=label)
        assert {each.source for each in mine} == {label.partition("@")[0]}
        assert len([each for each in mine if each.outcome]) == number
    command = ["history", url, "--store", url_of(store)]
    assert await asyncio.to_thread(main, [*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    rows = rows if isinstance(rows, list) else rows["items"]
    assert [(each["source"], each["version"]) for each in rows] == reported
    assert await asyncio.to_thread(main, [*command, "--in", "other", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {each["source"] for each in (rows if isinstance(rows, list) else rows["items"])} == {"other"}
    assert await asyncio.to_thread(main, command) == 0
    displayed = capsys.readouterr().out
    assert "docs@1" in displayed
    assert "other" in displayed
