"""The former text of a page is restored by REST and by a button, for those who may."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp as App
from tests.e2e.library import settings
from tests.e2e.sites import page, star, word
from tests.fakes.hostile import HostileSite
from tests.fakes.lies import shrunken
from tests.server.asking import REMOTE, ask
from tests.server.test_people import FORM, HTML, assert_page

from afresh.access.permissions import TokenScope
from afresh.app import build
from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES
from afresh.server.app import make_app

LONG = "Every harbour has a keeper who writes down which ship came and which one left. " * 60
BUTTON = "Restore previous text"


@pytest.fixture
def site() -> Iterator[HostileSite]:
    with HostileSite() as site:
        for path, links in star(3).items():
            site.put(path, page(path, links, f"{LONG} This is {word(path)}."))
        yield site


@pytest.fixture
async def kb(tmp_path: Path, site: HostileSite) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base in which one page of `docs` lost its text."""
    kb = await build(settings(tmp_path / "kb.db"))
    try:
        await kb.runs.crawl(site.url, name="docs")
        site.say("/p1", shrunken(0.01))
        await kb.runs.refresh(["docs"])
        yield kb
    finally:
        await kb.close()


@pytest.fixture
def app(kb: KnowledgeBase, tmp_path: Path) -> App:
    return make_app(kb, settings(tmp_path / "kb.db"), works=False)


async def number_of(kb: KnowledgeBase, url: str) -> int:
    [found] = await kb.pages.records(None, ALL_PAGES, url=url, limit=1)
    return found.id


async def test_U1_F123_a_former_text_is_restored_by_rest_once_for_each_key(
    kb: KnowledgeBase, app: App, site: HostileSite
) -> None:
    lost, whole = await number_of(kb, site.at("/p1")), await number_of(kb, site.at("/p2"))
    why = (await ask(app, "GET", f"/api/v1/pages/{lost}/why")).json
    assert why["former_until"] > why["page"]["checked_at"]
    for _ in range(2):
        answer = await ask(app, "POST", f"/api/v1/pages/{lost}/restore", {"idempotency-key": "once"})
        assert (answer.status, word("/p1") in answer.json["markdown"]) == (200, True)
    assert (await kb.search.search(word("/p1"))).hits
    for number in (lost, whole):
        none = await ask(app, "POST", f"/api/v1/pages/{number}/restore")
        assert (none.status, "no former text" in none.json["detail"]) == (404, True)
    assert (await ask(app, "POST", "/api/v1/pages/99/restore")).status == 404
    document = (await ask(app, "GET", "/api/v1/openapi.json")).json
    assert list(document["paths"]["/api/v1/pages/{number}/restore"]) == ["post"]


async def test_U1_F123_only_a_token_that_may_write_to_its_source_restores(
    kb: KnowledgeBase, app: App, site: HostileSite, tmp_path: Path
) -> None:
    number = await number_of(kb, site.at("/p1"))
    place = f"/api/v1/pages/{number}/restore"
    read = await kb.tokens.create(TokenScope.READ)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.md").write_text("# A\n\nText.\n", "utf-8")
    await kb.runs.crawl(str(tmp_path / "folder"), name="elsewhere")
    other = await kb.tokens.create(TokenScope.WRITE, sources=("elsewhere",))
    own = await kb.tokens.create(TokenScope.WRITE, sources=("docs",))
    assert (await ask(app, "POST", place, client=REMOTE)).status == 401
    assert (await ask(app, "POST", place, token=read.token, client=REMOTE)).status == 403
    assert (await ask(app, "POST", place, token=other.token, client=REMOTE)).status == 404
    assert (await kb.pages.explain(site.at("/p1"))).former is not None
    assert (await ask(app, "POST", place, token=own.token, client=REMOTE)).status == 200


async def test_U1_F123_a_button_restores_and_says_until_when_it_can(
    kb: KnowledgeBase, app: App, site: HostileSite
) -> None:
    number = await number_of(kb, site.at("/p1"))
    until = (await kb.pages.explain(site.at("/p1"))).former_until
    assert until is not None
    assert_page(await ask(app, "GET", f"/pages/{number}", HTML), 200, BUTTON)
    assert_page(await ask(app, "GET", f"/pages/{number}", HTML), 200, f"{until:%B %Y}")
    stranger = {**FORM, "origin": "https://evil.example"}
    assert_page(await ask(app, "POST", f"/pages/{number}/restore", stranger), 403, "Cross-origin request blocked")
    for _ in range(2):
        pressed = await ask(app, "POST", f"/pages/{number}/restore", FORM)
        assert (pressed.status, pressed.headers["location"]) == (303, f"/pages/{number}")
    restored = await ask(app, "GET", f"/pages/{number}", HTML)
    assert_page(restored, 200, word("/p1"))
    assert BUTTON not in restored.body.decode()
