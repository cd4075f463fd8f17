"""A name without a version: the one version there is, or the newest with a note; never for a removal."""

import json
from pathlib import Path

import pytest
from mcp import Client
from tests.e2e.inprocess import InProcess
from tests.e2e.library import settings
from tests.e2e.sites import lay
from tests.server.asking import ask

from afresh.cli import main
from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.server.mcp.server import make_server
from afresh.testing import TinySite


@pytest.fixture
async def react(kb: KnowledgeBase, tiny: TinySite) -> KnowledgeBase:
    """A source with two versions, and one with a single version."""
    for number in ("9", "10"):
        lay(tiny, {f"/{number}/": []})
        await kb.runs.crawl(tiny.at(f"/{number}/"), name="react", version=number)
    lay(tiny, {"/vue/": []})
    await kb.runs.crawl(tiny.at("/vue/"), name="vue", version="3")
    return kb


async def test_U2_a_name_with_one_version_means_it_everywhere(react: KnowledgeBase, tiny: TinySite) -> None:
    (report,) = await react.runs.refresh(["vue"])
    assert report.version == "3"
    (queued,) = await react.runs.refresh(["vue"], queue=True)
    assert queued.version == "3"
    await react.runs.cancel(queued.run)
    assert (await react.sources.view("vue")).version == "3"
    assert (await react.sources.plan("vue")).version == "3"
    assert [view.url for view in await react.pages.of_source("vue")] == [tiny.at("/vue/")]
    assert await react.links.of_source("vue") == []
    assert {change.version for change in await react.pages.changes("vue")} == {"3"}
    assert {run.version for run in await react.runs.records(await react.sources.ids("vue"))} == {"3"}
    assert (await react.pages.explain(tiny.at("/vue/"), within="vue")).version == "3"
    assert await react.sources.version_note("vue") is None
    assert await react.sources.remove("vue") == 1


async def test_U2_of_several_versions_the_newest_is_chosen_and_a_note_says_so(react: KnowledgeBase) -> None:
    (report,) = await react.runs.refresh(["react"])
    assert report.version == "10"
    assert (await react.sources.view("react")).version == "10"
    note = await react.sources.version_note("react")
    assert note == "react has 2 versions: using react@10, the newest"
    assert await react.sources.version_note("react@9") is None
    assert await react.sources.version_note("nothing") is None


async def test_U2_mcp_says_which_version_it_took(react: KnowledgeBase) -> None:
    note = "react has 2 versions: using react@10, the newest"
    async with Client(make_server(react, works=False)) as client:
        for tool in ("what_changed", "refresh_version"):
            for library, version, noted in (("react", None, True), ("react", "9", False), ("vue", None, False)):
                which = {"library": library} | ({"version": version} if version else {})
                answer = await client.call_tool(tool, which)
                assert not answer.is_error, answer
                texts = [getattr(each, "text", "") for each in answer.content]
                assert any(note in text for text in texts) is noted, (tool, which, texts)
                assert answer.structured_content is not None
                assert (note in answer.structured_content["notes"]) is noted, (tool, which)


async def test_U2_rest_web_and_mcp_searches_say_which_version_answers(react: KnowledgeBase, store: Path) -> None:
    note = "react has 2 versions: using react@10, the newest"
    app = make_app(react, settings(store), works=False)
    for label, noted in (("react", True), ("react@9", False), ("vue", False)):
        reported = (await ask(app, "GET", f"/api/v1/search?q=speaks&in={label}")).json
        assert ([each["source"] for each in reported["hits"]], note in reported["notes"]) == (
            [label.partition("@")[0]],
            noted,
        )
        for part in ("", "&part=hits"):
            page = await ask(app, "GET", f"/search?q=speaks&in={label}{part}", {"accept": "text/html"})
            assert (page.status, note in page.body.decode()) == (200, noted)
        async with Client(make_server(react, works=False)) as client:
            library, _, version = label.partition("@")
            request = {"query": "speaks", "library": library} | ({"version": version} if version else {})
            answer = await client.call_tool("search_docs", request)
            assert (note in answer.structured_content["notes"]) is noted


def test_U2_the_command_line_says_which_version_it_took(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    monkeypatch.setenv("AFRESH_NETWORK__ALLOW", "127.0.0.1/32")
    monkeypatch.setenv("AFRESH_EMBEDDING__PROVIDER", "none")
    monkeypatch.chdir(tmp_path)

    def call(*words: str, code: int = 0) -> tuple[str, str]:
        assert main([*words, "--store", f"sqlite:///{tmp_path / 'kb.db'}"]) == code, capsys.readouterr()
        captured = capsys.readouterr()
        return captured.out, captured.err

    for number in ("9", "10"):
        lay(tiny, {f"/{number}/": []})
        call("crawl", tiny.at(f"/{number}/"), "--name", "react", "--version", number, "--quiet")
    note = "react has 2 versions: using react@10, the newest"
    for command in ("show", "pages", "refresh", "changes", "plan"):
        assert note in call(command, "react")[1], command
        assert "versions" not in call(command, "react@9")[1], command
    assert call("search", "speaks", "--in", "react")[1].count(note) == 1
    refused = call("remove", "react", code=2)[1]
    assert "react has 2 versions: name one of react@10, react@9" in refused
    assert "--yes" not in refused
    out, _ = call("show", "react", "--json")
    assert json.loads(out)["version"] == "10"


async def test_U2_a_removal_has_to_name_the_version(react: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="react has 2 versions: name one of react@10, react@9"):
        await react.sources.remove("react")
    assert len(await react.sources.views()) == 3


async def test_U2_the_source_without_a_version_comes_first(react: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/next/": []})
    await react.runs.crawl(tiny.at("/next/"), name="react")
    assert (await react.sources.view("react")).version is None
    assert await react.sources.version_note("react") is None
