"""What people are told who look at pages: sentences on a page, never JSON, and where to log in."""

import re
from html import unescape
from pathlib import Path
from unittest.mock import AsyncMock
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser
from starlette.types import ASGIApp as App
from tests.e2e.library import settings
from tests.server.asking import REMOTE, Answered, ask

from afresh.access.permissions import TokenScope
from afresh.app import build
from afresh.errors import StoreBusy
from afresh.model.records import RunMode
from afresh.model.reports import SearchAnswer
from afresh.server.app import make_app
from afresh.server.auth import SURPRISE
from afresh.services.sources import SourceService
from afresh.services.status import StatusService

HTML = {"accept": "text/html,*/*;q=0.8"}
FORM = {**HTML, "content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:8000"}


def assert_page(answer: Answered, status: int, says: str) -> None:
    """It is a page with this sentence, under the policy of pages."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert says in answer.body.decode()


async def test_refused_browsers_get_a_page(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db", {"access.requests_per_second": 0.01, "access.burst": 60})
    kb = await build(config)
    try:
        made = await kb.tokens.create(TokenScope.READ)
        app: App = make_app(kb, config, works=False)
        ended = await ask(app, "POST", "/sources/1/settings", FORM, body=b"max_pages=9", client=REMOTE)
        assert_page(ended, 401, 'href="/login"')
        assert b"nothing was changed" in ended.body
        assert (await ask(app, "POST", "/api/v1/runs", FORM, client=REMOTE)).json["status"] == 401
        assert (await ask(app, "POST", "/sources/1/settings", client=REMOTE)).json["status"] == 401
        stranger = {**FORM, "origin": "https://evil.example"}
        assert_page(await ask(app, "POST", "/add", stranger, client=REMOTE), 403, "Cross-origin request blocked")
        assert_page(await ask(app, "GET", "/", {**HTML, "host": "evil.example"}), 421, "access.hosts")

        async def log_in(token: str, to: bytes = b"%2F") -> Answered:
            return await ask(app, "POST", "/login", FORM, body=b"token=" + token.encode() + b"&to=" + to, client=REMOTE)

        entered = await log_in(made.token)
        cookie = entered.headers["set-cookie"].partition(";")[0]
        # What another program on this machine set comes along, whatever it looks like.
        held = {**FORM, "cookie": f'theme={{"dark":true}}; a b=[1]; {cookie}; other'}
        assert (await ask(app, "GET", "/", held, client=REMOTE)).status == 200
        assert_page(await ask(app, "POST", "/sources/1/refresh", held, client=REMOTE), 403, "only read")

        for _ in range(70):
            tried = await log_in("afresh_guess")
        assert_page(tried, 429, "Wait a moment")
        assert "retry-after" in tried.headers
    finally:
        await kb.close()


async def test_a_login_leads_to_where_one_wanted_to_go_and_to_no_error(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        token = (await kb.tokens.create(TokenScope.WRITE)).token.encode()
        app: App = make_app(kb, config, works=False)

        async def lands(to: bytes) -> str:
            answer = await ask(app, "POST", "/login", FORM, body=b"token=" + token + b"&to=" + to)
            assert answer.status == 303, (to, answer.body)
            return answer.headers["location"]

        led = (await ask(app, "GET", "/日本", HTML)).headers["location"]
        assert await lands(led.partition("?to=")[2].encode()) == "/%E6%97%A5%E6%9C%AC"
        for elsewhere in (b"/%E6%97%A5", b"//evil.example", b"/%5Cevil.example", b"/%0D%0Aa:b", b"/%C2%85"):
            assert await lands(elsewhere) == "/", elsewhere
        far = (await ask(app, "GET", "/" + "a" * 3_000, HTML)).headers["location"]
        assert (await ask(app, "GET", "/login", HTML)).status == 200
        assert far == "/login?to=/"
    finally:
        await kb.close()


async def test_a_second_press_shows_the_run_that_is_under_way(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        source, _ = await kb.sources.add("https://docs.example.org/", name="docs", version=None, settings={})
        run = await kb.runs.start(source, RunMode.CRAWL)
        app: App = make_app(kb, config, works=False)
        again = await ask(app, "POST", f"/sources/{source.id}/refresh", FORM)
        assert (again.status, again.headers["location"]) == (303, f"/runs/{run.run}")
        for press in ("cancel", "cancel", "confirm"):  # when it is over already
            again = await ask(app, "POST", f"/runs/{run.run}/{press}", FORM)
            assert (again.status, again.headers["location"]) == (303, f"/runs/{run.run}"), press
        assert (await kb.runs.get(run.run)).state == "cancelled"
        assert (await ask(app, "POST", f"/api/v1/runs/{run.run}/cancel")).status == 422
        assert_page(await ask(app, "POST", "/runs/99/cancel", FORM), 404, "run 99")
    finally:
        await kb.close()


async def test_what_was_typed_to_add_a_source_stays_and_what_is_wrong_is_marked(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        app: App = make_app(kb, config, works=False)
        for body, target, name, marked in (
            (b"do=add&target=docs.example.org&name=a+b&version=2", "docs.example.org", "a b", False),
            (b"do=add&target=docs.example.org&name=ab&version=2&max_pages=x", "docs.example.org", "ab", False),
            (b"do=add&target=ftp%3A%2F%2Fx&name=ab&version=2", "ftp://x", "ab", True),
            (b"do=add&target=%2Fetc", "/etc", "", True),
            (b"do=add&target=%2Fa%00b", "/a\ufffdb", "", True),
            (b"do=add&target=", "", "", True),
        ):
            page = (await ask(app, "POST", "/add", FORM, body=body)).body.decode()
            content = LexborHTMLParser(page)
            inputs = [node.attributes for node in content.css("input[name]")]
            typed = {each["name"]: each.get("value") for each in inputs}
            assert (typed["target"], typed.get("name")) == (target, name), body
            assert typed.get("version") == ("2" if name else "")
            assert bool(content.css("#target[aria-invalid]")) is marked, body
            assert "target:" not in content.css_first("#wrong").text(), body  # type: ignore[union-attr]
        reads: App = make_app(kb, config, works=False, read_only=True)
        assert_page(await ask(reads, "GET", "/add", HTML), 403, "read-only")
        assert b'href="/add"' not in (await ask(reads, "GET", "/", HTML)).body
    finally:
        await kb.close()


async def test_a_preview_lists_files_and_links_and_keeps_nothing(tmp_path: Path) -> None:
    notes, links = tmp_path / "notes", tmp_path / "links.txt"
    notes.mkdir()
    for number in range(15):
        (notes / f"note-{number:02}.md").write_text(f"# Note {number}\n", "utf-8")
    (notes / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    links.write_text("https://docs.example.org/a\nhttps://docs.example.org/b\n", "utf-8")
    config = settings(tmp_path / "kb.db", {"server.allowed_roots": [str(tmp_path)]})
    kb = await build(config)
    try:
        app: App = make_app(kb, config, works=False)

        async def preview_text(target: Path, more: str = "") -> str:
            place = f"/add?do=preview&target={quote(str(target), safe='')}{more}"
            page = LexborHTMLParser((await ask(app, "GET", place, HTML)).body)
            return " ".join(" ".join(node.text(separator=" ") for node in page.css(".preview")).split())

        files = await preview_text(notes)
        assert "15 files to read" in files
        assert "note-00.md" in files
        assert "and 3 more" in files
        assert "Skipped 1 " in files
        assert "5 files to read" in await preview_text(notes, "&include=note-0[0-4].md")
        named = "https://docs.example.org/a https://docs.example.org/b"
        assert f"2 URLs listed {named}" in await preview_text(links)
        assert "1 file to read" in await preview_text(notes / "note-00.md")
        assert "2 files to read" in await preview_text(notes, "&max_pages=2")
        few = await preview_text(links, "&max_pages=1")
        assert "1 URL listed" in few
        assert "1 beyond the page limit" in few
        place = f"/add?do=preview&scope=domain&max_depth=1&target={quote(str(notes), safe='')}"
        form = LexborHTMLParser((await ask(app, "GET", place, HTML)).body)
        kept = [form.css_first(f"#f-{key}") for key in ("scope", "max_depth")]
        assert all(kept), "what was typed stays, whatever kind it is for"
        links.write_text("see https://user:hunter2@docs.example.org/ and more\n", "utf-8")
        assert "hunter2" not in await preview_text(links)
        links.write_text("nothing that leads anywhere\n", "utf-8")
        assert "Could not list everything" in await preview_text(links)
        assert not await kb.sources.all()
    finally:
        await kb.close()


async def test_an_overview_of_many_sources_comes_in_parts(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        names = [f"docs-{number:03}" for number in range(60)]
        for name in names:
            await kb.sources.add(f"https://{name}.example.org/", name=name, version=None, settings={})
        app: App = make_app(kb, config, works=False)
        seen, place = list[str](), "/"
        while place:
            answer = await ask(app, "GET", place, HTML)
            assert len(answer.body) < 120_000
            page = answer.body.decode()
            assert "<dt>Sources</dt><dd>60</dd>" in page
            assert "<dt>Pages</dt><dd>0</dd>" in page
            seen += re.findall(r'<h2><a href="/sources/\d+">(.*?)</a>', page)
            found = re.search(r'rel="next" href="(.*?)"', page)
            place = f"/{unescape(found[1])}" if found else ""
        assert seen == names
        [only] = re.findall(r"<h2><a[^>]*>(.*?)</a>", (await ask(app, "GET", "/?text=S-042.EX", HTML)).body.decode())
        assert only == "docs-042"
        assert b"No source matches" in (await ask(app, "GET", "/?text=nowhere", HTML)).body
    finally:
        await kb.close()


async def test_a_store_that_is_away_is_a_503(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    source, _ = await kb.sources.add("https://docs.example.org/", name="docs", version=None, settings={})
    app: App = make_app(kb, config, works=False)
    await kb.close()
    for place in ("/", f"/sources/{source.id}", "/search?q=x"):
        away = await ask(app, "GET", place, HTML)
        assert_page(away, 503, "the store ")
        assert away.headers["retry-after"] == "5"
    content = await ask(app, "GET", "/api/v1/sources")
    assert (content.status, content.headers["content-type"]) == (503, "application/problem+json")
    assert (await ask(app, "GET", "/api/v1/sources", token="afresh_x")).status == 503


async def test_an_unexpected_error_is_reported_safely_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object) -> None:
        raise KeyError("hidden")

    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        app = make_app(kb, config, works=False)
        monkeypatch.setattr(SourceService, "overviews", fails)
        monkeypatch.setattr(StatusService, "get", fails)
        content = await ask(app, "GET", "/api/v1/status")
        assert (content.status, content.json["detail"]) == (500, SURPRISE)
        assert content.headers["x-content-type-options"] == "nosniff"
        assert_page(await ask(app, "GET", "/", HTML), 500, "server log has the details")
        assert caplog.text.count("KeyError: 'hidden'") == 2
        assert (await ask(app, "HEAD", "/health")).status == 200
        answers = app.state.server.meter.answers
        assert {tuple(value for _, value in labels) for labels in answers} == {
            ("GET", "/api/v1/status", "500"),
            ("GET", "/", "500"),
            ("HEAD", "/health", "200"),
        }
    finally:
        await kb.close()


async def test_F14_a_store_that_is_away_is_no_wrong_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        source, _ = await kb.sources.add("https://docs.example.org/", name="docs", version=None, settings={})
        app: App = make_app(kb, config, works=False)
        away = AsyncMock(side_effect=StoreBusy("another process keeps the store locked"))
        for name in ("change", "add"):
            monkeypatch.setattr(SourceService, name, away)
        for place, body in (
            (f"/sources/{source.id}/settings", b"max_pages=9"),
            ("/add", b"do=add&target=docs.example.org"),
        ):
            content = await ask(app, "POST", place, FORM, body=body)
            assert_page(content, 503, "keeps the store locked")
            assert content.headers["retry-after"] == "5"
    finally:
        await kb.close()


async def test_an_error_page_links_back(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        source, _ = await kb.sources.add("https://docs.example.org/", name="docs", version=None, settings={})
        app: App = make_app(kb, config, works=False)
        wrong, base = f"/sources/{source.id}?depth=abc", "http://127.0.0.1:8000"
        for came, back in (
            (f"{base}/sources/{source.id}?text=a", f'href="/sources/{source.id}?text=a"'),
            (f"{base}{wrong}", 'href="/"'),
            ("https://evil.example/sources/1", 'href="/"'),
            ("http://[x", 'href="/"'),
            (f"{base}//evil.example/", 'href="/"'),
        ):
            page = await ask(app, "GET", wrong, {**HTML, "referer": came})
            assert_page(page, 422, "depth: Input should be a valid integer")
            [first] = re.findall(r'<p><a class="button[^"]*" (href="[^"]*")', page.body.decode())
            assert unescape(first) == back, came
        for filters in ("text=&status=&language=&depth=", "text=+&doubtful="):  # as the form sends what is empty
            assert (await ask(app, "GET", f"/sources/{source.id}?{filters}", HTML)).status == 200
        long = await ask(app, "GET", f"/sources/{source.id}?text={'x' * 501}", HTML)
        assert long.status == 422
        assert_page(await ask(app, "GET", "/sources/abc", HTML), 404, "/sources/abc does not exist")
    finally:
        await kb.close()


async def test_another_site_has_nothing_read_by_a_preview(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db", {"server.allowed_roots": [str(tmp_path)]})
    (tmp_path / "a.md").write_text("# A\n", "utf-8")
    kb = await build(config)
    try:
        app: App = make_app(kb, config, works=False)
        place = f"/add?do=preview&target={quote(str(tmp_path / 'a.md'))}"
        link = {**HTML, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}  # that somebody follows
        for site, ours in {"same-origin": True, "none": True, "cross-site": False, "same-site": False}.items():
            page = await ask(app, "GET", place, {**link, "sec-fetch-site": site})
            assert (page.status, b'aria-label="Preview"' in page.body) == (200, ours), site
            assert str(tmp_path / "a.md") in page.body.decode()
    finally:
        await kb.close()


async def test_S8_F129_a_page_of_another_site_has_nothing_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        asked = AsyncMock(return_value=SearchAnswer(hits=(), notes=()))
        monkeypatch.setattr(kb.search, "search", asked)
        app: App = make_app(kb, config, works=False)
        led = {**HTML, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        for headers, obeyed in (
            ({}, True),
            ({**led, "sec-fetch-site": "none"}, True),
            ({**led, "sec-fetch-site": "same-origin"}, True),
            ({"referer": "http://127.0.0.1:8000/docs"}, True),
            ({**led, "sec-fetch-site": "cross-site"}, False),
            ({**led, "sec-fetch-site": "same-site"}, False),
            ({**HTML, "referer": "https://evil.example/x"}, False),
        ):
            answer = await ask(app, "GET", "/api/v1/search?q=x&max_age=1s", headers)
            assert answer.status == 200, answer.body
            assert (asked.call_args.kwargs["max_age"] is not None) == obeyed, headers
            assert any("max_age was ignored" in note for note in answer.json["notes"]) != obeyed
    finally:
        await kb.close()
