"""Sources, pages and links changed by their numbers: name, URL and keywords; what is deleted is gone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp as App
from tests.e2e.library import EVERY_STORE, rows, settings
from tests.e2e.sites import lay
from tests.server.asking import Answered, ask

from afresh.access.permissions import TokenScope
from afresh.errors import AlreadyExists
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.testing import TinySite

JSON = {"content-type": "application/json"}
API = "/api/v1"


@pytest.fixture
def app(kb: KnowledgeBase, store: Path) -> App:
    """The server of the knowledge base."""
    return make_app(kb, settings(store), works=False)


async def patch(app: App, path: str, body: Mapping[str, object], token: str | None = None) -> Answered:
    return await ask(app, "PATCH", f"{API}{path}", JSON, body=json.dumps(body).encode(), token=token)


async def crawled(kb: KnowledgeBase, tiny: TinySite, name: str = "docs", root: str = "/docs/") -> int:
    """The number of a source with three pages."""
    lay(tiny, {root: [f"{root}a", f"{root}b"], f"{root}a": [], f"{root}b": []})
    await kb.runs.crawl(tiny.at(root), name=name)
    return (await kb.sources.view(name)).id


def fields_of(answer: Answered) -> list[str]:
    return [each["field"] for each in answer.json.get("errors", [])]


@EVERY_STORE
async def test_R6_C15_a_renamed_source_keeps_number_pages_history_and_schedule(
    kb: KnowledgeBase, tiny: TinySite, app: App
) -> None:
    number = await crawled(kb, tiny)
    await kb.schedules.set_rule(await kb.sources.labelled(["docs"]), "@daily")
    pages = {page.id: page.url for page in await kb.pages.of_source("docs")}
    changes = [change.id for change in await kb.pages.changes("docs")]
    renamed = await patch(app, f"/sources/{number}", {"name": "guide", "version": "2"})
    assert (renamed.status, renamed.json["id"], renamed.json["name"], renamed.json["version"]) == (
        200,
        number,
        "guide",
        "2",
    )
    assert {page.id: page.url for page in await kb.pages.of_source("guide@2")} == pages
    assert [change.id for change in await kb.pages.changes("guide@2")] == changes
    assert [run.source for run in await kb.runs.records(await kb.sources.ids("guide@2"))] == ["guide"]
    assert [each.source for each in await kb.schedules.records()] == ["guide"]
    assert (await kb.sources.view("guide")).next_time is not None
    (report,) = await kb.runs.refresh(["guide@2"])
    assert (report.state, report.checked, report.new + report.changed) == ("completed", 3, 0)
    plain = await patch(app, f"/sources/{number}", {"version": None})
    assert (plain.json["name"], plain.json["version"]) == ("guide", None)


async def test_R6_a_name_that_cannot_be_is_refused_and_nothing_changes(
    kb: KnowledgeBase, tiny: TinySite, app: App
) -> None:
    number = await crawled(kb, tiny)
    await crawled(kb, tiny, "other", "/other/")
    taken = await patch(app, f"/sources/{number}", {"name": "other"})
    assert (taken.status, "other" in taken.json["detail"]) == (409, True)
    both = {"name": "fine", "settings": {"max_page": 1}}
    for wrong, field in (
        ({"name": "a b"}, "name"),
        ({"version": "a b"}, "version"),
        ({"name": "kb/files"}, "name"),
        (both, "unknown rule max_page; did you mean max_pages?"),
    ):
        answer = await patch(app, f"/sources/{number}", wrong)
        assert (answer.status, answer.json["detail"].split(":")[0]) == (422, field), answer.json
    assert {source.label for source in await kb.sources.all()} == {"docs", "other"}
    assert (await patch(app, "/sources/999", {"name": "x"})).status == 404


@EVERY_STORE
async def test_R6_C15_a_source_goes_on_at_another_url(kb: KnowledgeBase, tiny: TinySite, app: App, store: Path) -> None:
    number = await crawled(kb, tiny)
    lay(tiny, {"/new/": ["/new/a"], "/new/a": []})
    moved = await patch(app, f"/sources/{number}", {"url": tiny.at("/new/")})
    assert (moved.status, moved.json["url"], moved.json["id"]) == (200, tiny.at("/new/"), number)
    assert {page.url for page in await kb.pages.of_source("docs")} == {
        tiny.at(path) for path in ("/docs/", "/docs/a", "/docs/b")
    }
    (report,) = await kb.runs.refresh(["docs"])
    assert report.new == 2
    for _ in range(2):  # what does not belong leaves as it does when rules change
        await kb.runs.refresh(["docs"])
    assert {page.url for page in await kb.pages.of_source("docs")} == {tiny.at("/new/"), tiny.at("/new/a")}


async def test_R6_the_brake_holds_what_leaves_with_another_url(kb: KnowledgeBase, tiny: TinySite, app: App) -> None:
    many = [f"/docs/p{number}" for number in range(40)]
    lay(tiny, {"/docs/": many, **{path: [] for path in many}})
    await kb.runs.crawl(tiny.at("/docs/"), name="docs")
    number = (await kb.sources.view("docs")).id
    lay(tiny, {"/new/": []})
    assert (await patch(app, f"/sources/{number}", {"url": tiny.at("/new/")})).status == 200
    for _ in range(3):
        (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "needs_confirmation"
    assert len(await kb.pages.of_source("docs")) == 42


async def test_R6_R5_another_url_is_checked_like_one_that_is_added(
    kb: KnowledgeBase, tiny: TinySite, app: App, tmp_path: Path
) -> None:
    number = await crawled(kb, tiny)
    await crawled(kb, tiny, "other", "/other/")
    twice = {"url": tiny.at("/other/")}
    refused = await patch(app, f"/sources/{number}", twice)
    assert (refused.status, "other" in refused.json["detail"]) == (409, True)
    for wrong in (str(tmp_path), f"file://{tmp_path}", "git+ssh://git@example.org/x", "gopher://x", "own/repo"):
        answer = await patch(app, f"/sources/{number}", {"url": wrong})
        assert (answer.status, answer.json["detail"].split(":")[0]) == (422, "url"), (wrong, answer.json)
    assert (await kb.sources.view("docs")).url == tiny.at("/docs/")
    assert (await patch(app, f"/sources/{number}", {**twice, "again": True})).status == 200
    await kb.runs.refresh(["docs"], queue=True)
    busy = await patch(app, f"/sources/{number}", {"url": tiny.at("/docs/")})
    assert (busy.status, bool(busy.json["run"])) == (409, True)
    assert (await patch(app, f"/sources/{number}", {"name": "fine"})).status == 200


async def test_R6_an_interrupted_run_does_not_go_on_at_another_url(kb: KnowledgeBase, tiny: TinySite, app: App) -> None:
    number = await crawled(kb, tiny)
    (queued,) = await kb.runs.refresh(["docs"], queue=True)
    await kb.runs.cancel(queued.run)
    lay(tiny, {"/new/": []})
    assert (await patch(app, f"/sources/{number}", {"url": tiny.at("/new/")})).status == 200
    (report,) = await kb.runs.refresh(["docs"])
    assert report.run != queued.run


@EVERY_STORE
async def test_S3_R6_the_operators_keys_do_not_follow_a_callers_url(
    kb: KnowledgeBase, tiny: TinySite, app: App
) -> None:
    number = await crawled(kb, tiny)
    assert (await kb.sources.get(number)).is_operators
    await patch(app, f"/sources/{number}", {"url": tiny.at("/new/")})
    assert not (await kb.sources.get(number)).is_operators
    await patch(app, f"/sources/{number}", {"url": tiny.at("/docs/")})  # which the operator named
    assert (await kb.sources.get(number)).is_operators
    source = await kb.sources.get(number)
    await kb.sources.change(source, url=tiny.at("/new/"), by_operator=True)
    assert (await kb.sources.get(number)).is_operators
    await crawled(kb, tiny, "other", "/other/")
    source = await kb.sources.get(number)
    with pytest.raises(AlreadyExists):
        await kb.sources.change(source, url=tiny.at("/other/"), by_operator=True)


async def test_F158_a_rename_moves_no_access_silently(kb: KnowledgeBase, tiny: TinySite, app: App) -> None:
    docs, other = await crawled(kb, tiny), await crawled(kb, tiny, "other", "/other/")
    bound = await kb.tokens.create(TokenScope.WRITE, sources=["docs"])
    whole = (await kb.tokens.create(TokenScope.WRITE)).token
    for body in ({"name": "docs/b"}, {"name": "free"}, {"version": "2"}, {"url": tiny.at("/x/")}):
        refused = await patch(app, f"/sources/{docs}", body, bound.token)
        assert refused.status == 403, body
    assert (await patch(app, f"/sources/{other}", {"name": "docs/b"}, bound.token)).status == 404
    assert (await patch(app, f"/sources/{docs}", {"settings": {"max_pages": 9}}, bound.token)).status == 200
    for body in ({"name": "docs/b"}, {"name": "docs", "version": "2"}):
        gained = await patch(app, f"/sources/{other}", body, whole)
        assert (gained.status, f"token {bound.id}" in gained.json["detail"]) == (403, True)
    within = await patch(app, f"/sources/{docs}", {"name": "docs/b"}, whole)
    assert (within.status, within.json["notes"]) == (200, [])
    lost = await patch(app, f"/sources/{docs}", {"name": "free"}, whole)
    assert (lost.status, len(lost.json["notes"])) == (200, 1)
    assert f"token {bound.id}" in lost.json["notes"][0]
    assert (await ask(app, "GET", f"{API}/sources/{docs}", token=bound.token)).status == 404
    back, notes = await kb.sources.change(await kb.sources.get(docs), name="docs", by_operator=True)
    assert (back.name, [f"token {bound.id}" in note for note in notes]) == ("docs", [True])
    await kb.tokens.revoke(bound.id)
    assert (await patch(app, f"/sources/{other}", {"name": "docs/b"}, whole)).status == 200


@EVERY_STORE
async def test_R6_C15_keywords_of_a_link_are_set_by_number(kb: KnowledgeBase, tiny: TinySite, app: App) -> None:
    await crawled(kb, tiny)
    link = (await kb.links.records(None, limit=1))[0].id
    words: dict[str, Any] = {"Budget": 0.5, "contact": 1}
    set_ = await patch(app, f"/links/{link}", {"keywords": words})
    assert (set_.status, set_.json["keywords"]) == (200, {"contact": 1.0, "budget": 0.5})
    assert 0 < set_.json["score"] < 2
    scored = await patch(app, f"/links/{link}", {"score": 0.25, "comment": "mine"})
    assert (scored.json["keywords"], scored.json["score"]) == (set_.json["keywords"], 0.25)
    given = await patch(app, f"/links/{link}", {"keywords": {"fee": 0.1}, "score": 2})
    assert (given.json["keywords"], given.json["score"], given.json["comment"]) == ({"fee": 0.1}, 2.0, "mine")
    (found,) = (await ask(app, "GET", f"{API}/links?keyword=fee")).json["items"]
    assert found["id"] == link
    none = await patch(app, f"/links/{link}", {"keywords": {}})
    assert (none.json["keywords"], none.json["score"]) == ({}, None)


async def test_R6_scores_are_within_their_range(kb: KnowledgeBase, tiny: TinySite, app: App) -> None:
    await crawled(kb, tiny)
    link = (await kb.links.records(None, limit=1))[0].id
    for body, field in (
        ({"score": 2.1}, "score"),
        ({"score": -0.1}, "score"),
        ({"keywords": {"fee": 1.1}}, "keywords.fee"),
        ({"keywords": {"fee": -1}}, "keywords.fee"),
    ):
        answer = await patch(app, f"/links/{link}", body)
        assert (answer.status, fields_of(answer)) == (422, [field]), body
    for words in ({"": 1}, {"a,b": 1}, {"Fee": 1, "fee": 1}, {f"w{n}": 1 for n in range(201)}):
        answer = await patch(app, f"/links/{link}", {"keywords": words})
        assert (answer.status, answer.json["detail"].startswith("keywords")) == (422, True), words
    assert (await kb.links.get(link)).score is None


@EVERY_STORE
async def test_R6_C15_what_was_deleted_is_not_found(kb: KnowledgeBase, tiny: TinySite, app: App, store: Path) -> None:
    number = await crawled(kb, tiny)
    page = (await kb.pages.of_source("docs"))[0].id
    link = (await kb.links.records(None, limit=1))[0].id
    for path in (f"/links/{link}", f"/pages/{page}", f"/sources/{number}"):
        assert (await ask(app, "GET", f"{API}{path}")).status == 200, path
        assert (await ask(app, "DELETE", f"{API}{path}")).status == 204, path
        assert (await ask(app, "GET", f"{API}{path}")).status == 404, path
        assert (await ask(app, "DELETE", f"{API}{path}")).status == 404, path
        if path.startswith("/pages"):
            later = {"next_look": "2030-01-01T00:00:00Z"}
            assert (await patch(app, path, later)).status == 404
            for more in ("/why", "/history"):  # the evidence stays as long as the tombstone
                assert (await ask(app, "GET", f"{API}{path}{more}")).status == 200
    assert rows(store, "select count(*) from pages") == [(0,)]
