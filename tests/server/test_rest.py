"""REST on a real port: what a team does with it, from the first source to the last page."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.server.served import Client, served

import afresh
from afresh.server.replies import MAX_STREAMS
from afresh.testing import TinySite

API = "/api/v1"
PLAIN = {"accept-encoding": "identity"}


@dataclass(frozen=True)
class Crawled:
    """A source that was added by REST and crawled once; a test gets a copy of the file."""

    store: Path
    url: str  # of the site, which stays up
    source: int
    root: dict[str, Any]  # its first page
    run: dict[str, Any]  # its first run, when it had ended


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A small site, crawled once for all tests of this file."""
    store = tmp_path_factory.mktemp("rest") / "kb.db"

    async def crawl(url: str) -> Crawled:
        async with served(store) as client:
            new = {"target": url, "name": "harbor", "version": "2", "settings": {"max_pages": 50}}
            status, source = await client.ask("POST", f"{API}/sources", json=new)
            assert status == 201, source
            assert await client.events(source["last_run"])
            run = await client.get(f"{API}/runs/{source['last_run']}")
            [root] = (await client.get(f"{API}/pages", params={"url": url}))["items"]
            return Crawled(store, url, source["id"], root, run)

    with TinySite.docs() as site:
        yield asyncio.run(crawl(site.url))


@pytest.fixture
def crawled(template: Crawled, tmp_path: Path) -> Crawled:
    store = tmp_path / "kb.db"
    shutil.copy(template.store, store)
    return replace(template, store=store)


@pytest.fixture
async def client(crawled: Crawled) -> AsyncIterator[Client]:
    """Asks a server over the crawled source, which starts no run."""
    async with served(crawled.store, works=False) as client:
        yield client


async def test_C1_a_source_is_crawled_when_it_is_added(crawled: Crawled) -> None:
    async with served(crawled.store) as client:
        assert (await client.get("/health"))["status"] == "ok"
        assert (await client.get("/ready"))["worker"] == "here"
    assert (crawled.run["state"], crawled.run["source"]) == ("completed", "harbor")


async def test_C16_pages_of_a_source_come_in_parts(client: Client, crawled: Crawled) -> None:
    number, root, ended = crawled.source, crawled.root, crawled.run
    first = await client.get(f"{API}/sources/{number}/pages?limit=4")
    rest = await client.get(f"{API}/pages?source={number}&cursor={first['next']}&limit=1000")
    pages = first["items"] + rest["items"]
    assert len({page["id"] for page in pages}) == len(pages)
    assert sum(page["status"] == "active" for page in pages) == ended["new"]
    assert rest["next"] is None
    assert root in pages


async def test_C16_an_exact_url_finds_one_page_or_none(client: Client, crawled: Crawled) -> None:
    root = crawled.root
    [found] = (await client.get(f"{API}/pages", params={"url": crawled.url}))["items"]
    assert found == root == await client.get(f"{API}/pages/{root['id']}")
    assert (await client.get(f"{API}/pages", params={"url": crawled.url + "nowhere"}))["items"] == []
    both = {"url": crawled.url, "status": "error"}
    assert (await client.get(f"{API}/pages", params=both))["items"] == [], "all that is text fits"
    named = await client.get(f"{API}/pages", params={"text": "INSTALL", "depth": 1, "language": "en"})
    assert ["install" in page["url"] for page in named["items"]] == [True]


async def test_a_head_request_is_answered_without_a_body(client: Client, crawled: Crawled) -> None:
    run = crawled.run["run"]
    for path in (f"{API}/pages", f"{API}/runs/{run}/events"):
        async with client.session.head(path) as head:
            assert (head.status, await head.read()) == (200, b"")


async def test_C15_a_page_has_its_text_passages_reasons_and_copies(client: Client, crawled: Crawled) -> None:
    root = crawled.root
    assert "# " in (await client.get(f"{API}/pages/{root['id']}/text"))["markdown"]
    passages = (await client.get(f"{API}/pages/{root['id']}/passages"))["items"]
    assert passages[0]["content"] in (await client.get(f"{API}/pages/{root['id']}/text"))["markdown"]
    assert (await client.get(f"{API}/pages/{root['id']}/why"))["page"]["id"] == root["id"]
    assert (await client.get(f"{API}/pages/{root['id']}/copies"))["copies"] == []


async def test_a_run_that_deletes_nothing_holds_nothing(client: Client, crawled: Crawled) -> None:
    run = crawled.run["run"]
    held = await client.get(f"{API}/runs/{run}/held")
    assert held == {"pages": [], "count": 0, "percent": 10.0, "allowed": 10}


async def test_a_preview_says_what_belongs_to_a_source(client: Client, crawled: Crawled) -> None:
    request_body = {"target": crawled.url, "settings": {"scope": "subpages", "exclude": ["/guide/*"]}}
    status, content = await client.ask("POST", f"{API}/preview", json=request_body)
    assert (status, content["title"], content["kind"]) == (200, "Harbor", "web"), content
    assert {"/guide/" in url for url in content["belong"]} == {False}
    assert all("/guide/" in url for url, _ in content["left_out"])


async def test_B13_attempts_are_listed_by_page_and_by_run(client: Client, crawled: Crawled) -> None:
    root, ended, run = crawled.root, crawled.run, crawled.run["run"]
    attempts = (await client.get(f"{API}/pages/{root['id']}/history"))["items"]
    assert "success" in {attempt["outcome"] for attempt in attempts}
    looks = (await client.get(f"{API}/runs/{run}/attempts"))["items"]
    assert len(looks) == ended["checked"] == ended["queued"]
    some = await client.get(f"{API}/runs/{run}/attempts?outcome=success&limit=3")
    others = await client.get(f"{API}/runs/{run}/attempts?outcome=success&cursor={some['next']}")
    both = some["items"] + others["items"]
    assert both == [look for look in looks if look["outcome"] == "success"]
    odd = base64.urlsafe_b64encode(b'["odd",1]').decode()
    for wrong in (f"outcome=failed&cursor={some['next']}", f"cursor={odd}"):
        status, content = await client.ask("GET", f"{API}/runs/{run}/attempts?{wrong}")
        assert (status, content["detail"].split(":")[0]) == (422, "cursor"), wrong


async def test_C15_C16_links_come_best_first_with_their_pages_and_are_changed_by_hand(
    client: Client, crawled: Crawled
) -> None:
    number, root = crawled.source, crawled.root
    on_root = (await client.get(f"{API}/pages/{root['id']}/links"))["items"]
    assert all(root["id"] in [page["id"] for page in link["pages"]] for link in on_root)
    worst = on_root[-1]["id"]
    status, link = await client.ask("PATCH", f"{API}/links/{worst}", json={"score": 0.9, "comment": "mine"})
    assert (status, link["score"]) == (200, 0.9)
    best = await client.get(f"{API}/sources/{number}/links?limit=1")
    assert best["items"][0]["id"] == worst
    behind = await client.get(f"{API}/links", params={"cursor": best["next"]})
    assert worst not in [link["id"] for link in behind["items"]]
    made = {"page_id": root["id"], "url": "https://example.org/x", "text": "X"}
    status, added = await client.ask("POST", f"{API}/links", json=made)
    assert (status, added["pages"][0]["text"]) == (201, "X")
    assert (await client.ask("DELETE", f"{API}/links/{added['id']}"))[0] == 204
    assert (await client.ask("GET", f"{API}/links/{added['id']}"))[0] == 404


async def test_a_crawled_source_is_searched(client: Client, crawled: Crawled) -> None:
    answer = await client.get(f"{API}/search", params={"q": "retry", "in": "harbor@2", "limit": 3})
    assert answer["hits"]
    asked = {"q": "retry", "in": "harbor@2"}
    by_words = [await client.get(f"{API}/search", params={**asked, "mode": mode}) for mode in ("text", "keyword")]
    assert by_words[0]["hits"] == by_words[1]["hits"] != []
    assert not answer["weak"]
    nonsense = await client.get(f"{API}/search", params={"q": "retry xyzzyqwv blorptang vontifex frimmish"})
    assert nonsense["weak"]
    assert all(hit["weak"] and hit["relevance"] < 0.32 for hit in nonsense["hits"])


async def test_changes_come_newest_first_by_kind_and_as_a_feed(client: Client, crawled: Crawled) -> None:
    number, ended = crawled.source, crawled.run
    changes = await client.get(f"{API}/changes?limit=2")
    older = await client.get(f"{API}/sources/{number}/changes", params={"cursor": changes["next"]})
    assert min(each["id"] for each in changes["items"]) > max(each["id"] for each in older["items"])
    async with client.session.get(f"{API}/changes.atom") as feed:
        tree = ET.fromstring(await feed.text())
    assert len(tree.findall("{http://www.w3.org/2005/Atom}entry")) == ended["new"]
    assert len((await client.get(f"{API}/changes?kind=new"))["items"]) == ended["new"]
    assert (await client.get(f"{API}/sources/{number}/changes?kind=moved"))["items"] == []


async def test_charts_have_a_calendar_a_map_hosts_and_what_is_ahead(client: Client, crawled: Crawled) -> None:
    number, root, ended = crawled.source, crawled.root, crawled.run
    year = await client.get(f"{API}/sources/{number}/calendar")
    assert (year["changes"], [day["kinds"] for day in year["days"]]) == (ended["new"], [{"new": ended["new"]}])
    assert await client.get(f"{API}/calendar?days=371") == year
    drawn = await client.get(f"{API}/sources/{number}/map?limit=5")
    assert [node["parent"] for node in drawn["nodes"]] == [None, *[root["id"]] * 4]
    assert (drawn["nodes"][0]["id"], drawn["pages"] - drawn["pages_left_out"]) == (root["id"], 5)
    [host] = (await client.get(f"{API}/sources/{number}/hosts"))["hosts"]
    assert (host["waiting"], host["resting"]) == (0, False)
    assert (await client.get(f"{API}/hosts"))["respects_robots"] is True
    assert sum((await client.get(f"{API}/sources/{number}/ahead"))["hours"]) >= ended["new"]


async def test_a_map_is_compressed_and_not_sent_twice(client: Client, crawled: Crawled) -> None:
    number = crawled.source
    place = f"{API}/sources/{number}/map"
    async with client.session.get(place) as short, client.session.get(place, headers=PLAIN) as long:
        assert (short.headers["content-encoding"], long.headers.get("content-encoding")) == ("gzip", None)
        assert int(short.headers["content-length"]) < int(long.headers["content-length"]) / 2
        assert (await short.json(), short.headers["vary"]) == (await long.json(), long.headers["vary"])
        known = {"if-none-match": short.headers["etag"]}
    async with client.session.get(place, headers=known) as again:
        assert (again.status, await again.read()) == (304, b"")


async def test_the_receipt_of_a_first_run_saved_nothing(client: Client, crawled: Crawled) -> None:
    number, ended = crawled.source, crawled.run
    receipt = await client.get(f"{API}/sources/{number}/receipt")
    assert (receipt["processed"], receipt["skipped"], receipt["bytes_saved"]) == (ended["new"], 0, 0)
    assert receipt["fresh"] == receipt["pages"] == ended["new"]


async def test_C15_settings_of_a_source_are_changed(client: Client, crawled: Crawled) -> None:
    number = crawled.source
    changed = {"settings": {"max_pages": 60, "render": "never"}, "reset": ["render"]}
    status, source = await client.ask("PATCH", f"{API}/sources/{number}", json=changed)
    assert (status, source["rules"]["max_pages"], source["policy"]) == (200, 60, {})
    status, content = await client.ask("PATCH", f"{API}/sources/{number}", json={"settings": {"max_page": 1}})
    assert (status, "max_pages" in content["detail"]) == (422, True)


async def test_C15_R11_the_next_look_at_a_page_is_set_by_hand(client: Client, crawled: Crawled) -> None:
    root = crawled.root
    later = {"next_look": "2030-01-01T00:00:00Z"}
    assert (await client.ask("PATCH", f"{API}/pages/{root['id']}", json=later))[0] == 200
    assert (await client.get(f"{API}/pages/{root['id']}/why"))["next_look"] == later["next_look"]
    visible = await client.get(f"{API}/pages/{root['id']}")  # R11
    assert (visible["next_look"], bool(visible["created_at"] and visible["last_scraped"])) == (later["next_look"], True)


async def test_C15_a_page_is_deleted_by_hand(client: Client, crawled: Crawled) -> None:
    root = crawled.root
    assert (await client.ask("DELETE", f"{API}/pages/{root['id']}"))[0] == 204
    assert (await client.ask("GET", f"{API}/pages/{root['id']}"))[0] == 404
    why = await client.get(f"{API}/pages/{root['id']}/why")
    assert why["page"]["status"] == "deleted"
    for deleted in (False, True):
        asked = {"url": crawled.url, "deleted": str(deleted).lower()}
        assert len((await client.get(f"{API}/pages", params=asked))["items"]) == deleted


async def test_C15_a_source_is_removed_with_its_pages(client: Client, crawled: Crawled) -> None:
    number, root = crawled.source, crawled.root
    assert (await client.ask("DELETE", f"{API}/sources/{number}"))[0] == 204
    assert (await client.get(f"{API}/sources"))["items"] == []
    assert (await client.ask("GET", f"{API}/pages/{root['id']}"))[0] == 404


async def test_F106_F110_what_cannot_be_done_is_a_problem_that_names_field_and_fix(
    tmp_path: Path, site: TinySite
) -> None:
    async with served(tmp_path / "kb.db", works=False) as client:
        status, source = await client.ask("POST", f"{API}/sources", json={"target": site.url})
        assert status == 201
        number, run = source["id"], source["last_run"]

        # a second start names the first
        status, content = await client.ask("POST", f"{API}/runs", json={"source_id": number})
        assert (status, content["run"]) == (409, run)
        status, content = await client.ask("POST", f"{API}/runs/{run}/confirm")
        assert (status, "does not need confirmation" in content["detail"]) == (422, True)
        status, content = await client.ask("POST", f"{API}/runs/{run}/cancel")
        assert (status, content["state"]) == (200, "cancelled")
        for _ in range(MAX_STREAMS + 1):  # streams that ended do not count
            assert (await client.events(run))[0].startswith("event: end")
        assert (await client.ask("POST", f"{API}/runs", json={"source_id": number}))[0] == 202

        for wrong in ("limit=-1", "limit=1000000000000000000", "limit=1000000000", "cursor=abc", "status=none"):
            status, content = await client.ask("GET", f"{API}/pages?{wrong}")
            assert (status, wrong.partition("=")[0] in content["detail"]) == (422, True), (wrong, content)
        status, content = await client.ask("PATCH", f"{API}/sources/{number}", json={"reset": ["max_page"]})
        assert (status, "max_pages" in content["detail"]) == (422, True), "a name that is none"
        huge = base64.urlsafe_b64encode(json.dumps([10**400, "x", 1]).encode()).decode().rstrip("=")
        status, content = await client.ask("GET", f"{API}/links?cursor={huge}")
        assert (status, "cursor" in content["detail"]) == (422, True), "no float holds it"
        for path in (
            "pages/99",
            "links/99",
            "runs/99",
            "runs/99/attempts",
            "sources/99",
            "sources/99/pages",
            "pages?source=99",
        ):
            assert (await client.ask("GET", f"{API}/{path}"))[0] == 404, path
        for path in ("pages/0", "links/9223372036854775808", "runs/x", "runs/1/attempts?outcome=odd"):
            assert (await client.ask("GET", f"{API}/{path}"))[0] == 422, path

        # files of the server are closed unless the settings open them
        for target in ("/etc", "file:///etc", "~/x", "./x", "git+file:///srv/x", str(tmp_path)):
            status, content = await client.ask("POST", f"{API}/sources", json={"target": target})
            assert (status, "allowed_roots" in content["detail"]) == (422, True), (target, content)
        wrong_page = {"source_id": number, "url": "https://elsewhere.example/"}
        status, content = await client.ask("POST", f"{API}/pages", json=wrong_page)
        assert (status, content["detail"].startswith("url: ")) == (422, True)
        status, page = await client.ask("POST", f"{API}/pages", json={**wrong_page, "url": site.url + "extra"})
        assert (status, page["status"]) == (201, "pending")
        deep = "[" * 100_000 + "]" * 100_000
        for body in (deep, '{"target": "\\ud800"}', "{", "null", '{"target": "x", "proxy": "http://evil"}'):
            status, content = await client.ask(
                "POST", f"{API}/sources", data=body, headers={"content-type": "application/json"}
            )
            assert status in (400, 413, 422), (body[:40], content)
        status, content = await client.ask("POST", f"{API}/sources", data='{"target": "x"}')
        assert content["detail"] == "body: expected a JSON object, sent with Content-Type: application/json"


async def test_reads_have_an_etag_and_a_request_with_a_key_runs_once(
    tmp_path: Path, site: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.server.replies.MAX_STREAMS", 1)
    async with served(tmp_path / "kb.db", works=False) as client:
        new = {"target": site.url, "run": False}
        key = {"idempotency-key": "first"}
        status, source = await client.ask("POST", f"{API}/sources", json=new, headers=key)
        assert status == 201
        assert await client.ask("POST", f"{API}/sources", json=new, headers=key) == (201, source)
        status, content = await client.ask("POST", f"{API}/sources", json={**new, "name": "x"}, headers=key)
        assert (status, "Idempotency-Key" in content["detail"]) == (422, True)
        assert (await client.ask("POST", f"{API}/sources", json=new))[0] == 200, "known: not made again"
        async with client.session.get(f"{API}/sources") as read:
            tag = read.headers["etag"]
            assert read.headers["cache-control"] == "private, no-cache", "not for other tokens"
        async with client.session.get(f"{API}/sources", headers={"if-none-match": f'"x", W/{tag}'}) as again:
            assert (again.status, await again.read()) == (304, b"")
        await client.ask("PATCH", f"{API}/sources/{source['id']}", json={"settings": {"max_depth": 3}})
        async with client.session.get(f"{API}/sources", headers={"if-none-match": tag}) as changed:
            assert (changed.status, json.loads(await changed.text())["items"][0]["rules"]) == (200, {"max_depth": 3})
        status, run = await client.ask("POST", f"{API}/runs", json={"source_id": source["id"]})
        assert status == 202
        async with client.session.get(f"{API}/runs/{run['run']}/events") as watched:
            assert await watched.content.readline() == b"event: progress\n"
            for other in (f"{API}/runs/{run['run']}/events", "/live"):
                status, content = await client.ask("GET", other)
                assert (status, "event streams" in content["detail"]) == (429, True)
            assert (await client.ask("DELETE", f"{API}/sources/{source['id']}"))[0] == 204
            assert (await watched.text()).endswith('event: end\ndata: {"state":"removed"}\n\n')


async def test_a_server_that_only_reads_has_no_route_that_writes(tmp_path: Path) -> None:
    async with served(tmp_path / "kb.db", read_only=True, schedules=True) as client:
        ready = await client.get("/ready")
        assert (ready["worker"], ready["schedules"]) == ("elsewhere", "elsewhere")
        document = await client.get(f"{API}/openapi.json")
        assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
        methods = {method for item in document["paths"].values() for method in item}
        assert methods == {"get"}
        assert (await client.ask("POST", f"{API}/sources", json={"target": "https://x.example/"}))[0] == 405


def test_R13_the_package_holds_only_what_was_written_for_it() -> None:
    """Files of others come with the packages that ship them: text of ours is small, and nothing is packed.

    Exceptions are what scripts/distil_model.py and scripts/distil_languages.py make.
    """
    package = Path(afresh.__file__).parent
    model = package / "models" / "fast"
    files = [file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    distilled = [
        file for file in files if file.parent == model or (file.stem == "language_table" and file.suffix != ".py")
    ]
    assert sum(file.stat().st_size for file in distilled) < 11_000_000
    files = [file for file in files if file not in distilled]
    kinds = {".py", ".sql", ".html", ".css", ".js", ".svg", ".md", ".txt", ".typed"}
    assert {file.suffix for file in files} == kinds
    assert [file.name for file in files if file.stat().st_size > 40_000] == []


async def test_C1_the_page_that_shows_the_api_needs_no_other_host(tmp_path: Path) -> None:
    async with served(tmp_path / "kb.db", works=False) as client:
        async with client.session.get("/docs") as page:
            visible = await page.text()
            assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "http" not in visible
        assert 'rel="icon" href="/assets/mark.svg"' in visible  # U4
        for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
            assert f"/docs/{name}" in visible
            async with client.session.get(f"/docs/{name}") as file:
                assert (file.status, len(await file.text()) > 100) == (200, True)
