"""A source whose first crawl read nothing is not kept; its run stays readable."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, opened, rows, settings, url_of
from tests.e2e.sites import lay
from tests.server.asking import ask

from afresh.cli import main
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.testing import TinySite

JSON = {"content-type": "application/json"}


def dumps(body: Mapping[str, object]) -> bytes:
    return json.dumps(body).encode()


@EVERY_STORE
async def test_U3_a_source_whose_first_crawl_read_nothing_is_not_kept(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    report = await kb.runs.crawl(tiny.at("/tpyo/"), name="typo", keep=False)
    assert (report.state, report.kept) == ("failed", False)
    assert await kb.sources.views() == []
    advice = [note for note in report.notes if "not added" in note]
    assert advice == ["nothing was read, so typo was not added"]  # REST and MCP have no --keep
    assert not any("afresh remove" in note for note in report.notes)
    again = await kb.runs.get(report.run)  # what happened can still be read
    assert (again.state, again.error, again.source, again.kept) == ("failed", report.error, "typo", False)
    assert rows(store, "select count(*) from pages") == [(0,)]


async def test_U3_one_that_is_to_be_kept_is(kb: KnowledgeBase, tiny: TinySite) -> None:
    report = await kb.runs.crawl(tiny.at("/later/"), name="later", keep=True)
    assert (report.state, report.kept) == ("failed", True)
    (source,) = await kb.sources.views()
    assert source.name == "later"


async def test_U3_one_that_was_read_before_is_kept_when_it_fails(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/docs/": []})
    assert (await kb.runs.crawl(tiny.at("/docs/"), name="docs", keep=False)).kept
    tiny.delete("/docs/")
    for _ in range(3):
        report = await kb.runs.crawl(tiny.at("/docs/"), name="docs", keep=False)
        assert report.kept
    assert [source.name for source in await kb.sources.views()] == ["docs"]


async def test_U3_an_interrupted_first_crawl_is_kept(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/docs/": []})
    kb.stop()
    report = await kb.runs.crawl(tiny.at("/docs/"), name="docs", keep=False)
    assert (report.state, report.kept) == ("cancelled", True)
    assert len(await kb.sources.views()) == 1


async def test_U3_a_first_crawl_that_has_to_wait_is_kept(tiny: TinySite, store: Path) -> None:
    tiny.fail("/docs/", 429, retry_after=4000)
    async with opened(store) as kb:
        report = await kb.runs.crawl(tiny.at("/docs/"), name="docs", keep=False)
        assert report.kept == (report.state == "partial")


async def test_U3_a_folder_without_anything_to_read_is_not_kept(kb: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"\x89PNG")
    report = await kb.runs.crawl(str(folder), keep=False)
    assert not report.kept
    assert await kb.sources.views() == []


def test_U3_a_command_that_read_nothing_and_kept_nothing_ends_with_1(
    tmp_path: Path, store: Path, work: type[InProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert main(["crawl", str(folder), "--store", url_of(store)]) == 1
    reported = capsys.readouterr().out
    assert reported.count("was not added") == 1
    assert f"To keep the source anyway, run afresh crawl {folder} --keep" in reported
    assert main(["crawl", str(folder), "--keep", "--store", url_of(store)]) == 0


async def test_F138_agents_that_mistype_leave_no_source(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    typo = {"target": tiny.at("/tpyo/"), "name": "typo"}
    app = make_app(kb, settings(store), works=False)
    added = await ask(app, "POST", "/api/v1/sources", body=dumps(typo), headers=JSON)
    assert added.status == 201
    number = added.json["id"]
    (run,) = [each for each in await kb.runs.records() if each.source == "typo"]
    await kb.runs.work(once=True)
    assert (await ask(app, "GET", f"/api/v1/sources/{number}")).status == 404
    reported = await ask(app, "GET", f"/api/v1/runs/{run.run}")
    assert (reported.status, reported.json["state"], reported.json["kept"]) == (200, "failed", False)
    assert "404" in reported.json["error"]
    queued = await kb.runs.crawl(tiny.at("/tpyo/"), on_the_web=True, keep=False, queue=True)  # as scrape_docs does
    await kb.runs.work(once=True)
    assert (await kb.runs.get(queued.run)).kept is False
    kept = await ask(app, "POST", "/api/v1/sources", body=dumps({**typo, "keep": True}), headers=JSON)
    await kb.runs.work(once=True)
    assert (await ask(app, "GET", f"/api/v1/sources/{kept.json['id']}")).status == 200
