"""Webhooks that come in, through the door, to the pages that they name and no others."""

import hashlib
import hmac
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from starlette.types import ASGIApp as App
from starlette.types import Receive, Scope, Send
from tests.e2e.inprocess import InProcess
from tests.e2e.library import counts, found, opened, rows, settings
from tests.fakes.github_server import GithubServer
from tests.server.asking import REMOTE, Answered, ask

from afresh.config.server import AccessSettings, WebhookSettings
from afresh.errors import ConfigError, StoreDamaged, UsageError
from afresh.kb import KnowledgeBase
from afresh.model.records import Policy, RunMode, Source
from afresh.notify.signatures import sign
from afresh.server.app import make_app
from afresh.server.auth import AuthMiddleware
from afresh.server.webhooks import WebhookReceiver
from afresh.services.webhooks import PutOff
from afresh.testing import FrozenClock, TinySite
from afresh.urls.scope import Rules

SECRET = "It's a Secret to Everybody"
FILES = {
    "README.md": b"# Harbor\n\nwordharbor\n",
    "docs/guide.md": b"# Guide\n\nwordguide\n",
    "a.md": b"# A\n\nworda\n",
}
HOOKS = {
    "github": WebhookSettings(secret=SECRET),
    "cms": WebhookSettings(secret="cms-secret", sources=("docs",)),
    "out": WebhookSettings(secret="out-secret", url="https://ops.example/x"),
}


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 5, 1, tzinfo=UTC))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> type[InProcess]:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    return InProcess


@pytest.fixture
def server() -> Iterator[GithubServer]:
    with GithubServer() as server:
        server.push(FILES)
        yield server


@pytest.fixture
async def kb(server: GithubServer, tmp_path: Path, clock: FrozenClock, work: object) -> AsyncIterator[KnowledgeBase]:
    async with opened(tmp_path / "kb.db", {**server.settings, "crawl.probe": False}, clock=clock) as kb:
        yield kb


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("only webhooks are asked for here")


@pytest.fixture
def app(kb: KnowledgeBase, clock: FrozenClock) -> App:
    access = AccessSettings(hosts=("docs.internal",), burst=1_000)
    hooks = WebhookReceiver(kb.webhooks, HOOKS, access, clock)
    return AuthMiddleware(nothing_else, kb.tokens, access, hooks=hooks)


async def pushed(app: App, server: GithubServer, delivery: str = "d1", event: str = "push", **more: Any) -> Answered:
    payload = {
        "ref": "refs/heads/main",
        "repository": {"html_url": f"{server.web_url}/octo/docs", "default_branch": "main"},
        "commits": [{"added": ["docs/new.md"], "modified": ["docs/guide.md"], "removed": ["a.md"]}],
        **more,
    }
    body = json.dumps(payload).encode()
    headers = {
        "host": "docs.internal",
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": delivery,
        "x-hub-signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
    }
    return await ask(app, "POST", "/api/v1/webhooks/github", headers, body=body, client=REMOTE)


async def test_F100_A28_a_push_updates_exactly_the_changed_files(
    app: App, kb: KnowledgeBase, server: GithubServer, clock: FrozenClock
) -> None:
    await kb.runs.crawl("octo/docs", name="docs")
    after = {name: text for name, text in FILES.items() if name != "a.md"}
    server.push({**after, "docs/guide.md": b"# Guide\n\nwordother\n", "docs/new.md": b"# N\n\nwordnew\n"})
    server.forget()
    answered = await pushed(app, server)
    assert (answered.status, answered.json["sources"]) == (202, ["docs"])
    assert (await pushed(app, server)).json["state"] == "known"  # the same delivery again
    for number in range(100):  # and a hundred others
        assert (await pushed(app, server, f"flood-{number}")).status == 202
    assert await kb.webhooks.check_requested() == []  # more may follow
    clock.advance(2)
    (queued,) = await kb.webhooks.check_requested()
    assert (queued.state, queued.mode) == ("queued", "refresh")
    assert await kb.webhooks.check_requested() == []
    reports: list[Any] = []
    await kb.runs.work(once=True, on_report=reports.append)
    (report,) = reports
    assert counts(report) == {"new": 1, "changed": 1, "deleted": 1, "not_modified": 1}
    assert server.kinds["raw"] == 2
    assert await found(kb, "wordother") == {server.page("docs/guide.md")}
    assert await found(kb, "wordnew") == {server.page("docs/new.md")}
    assert await found(kb, "worda") == set()


async def test_F100_what_is_not_a_push_to_what_is_read_changes_nothing(
    app: App, kb: KnowledgeBase, server: GithubServer, clock: FrozenClock
) -> None:
    assert (await pushed(app, server)).status == 404  # no source reads it
    await kb.runs.crawl("octo/docs", name="docs")
    assert (await pushed(app, server, "p", "ping", zen="…")).json["state"] == "nothing"
    assert (await pushed(app, server, "b", ref="refs/heads/dev")).json["state"] == "nothing"
    assert (await pushed(app, server, "x", deleted=True)).json["state"] == "nothing"
    other = {"html_url": "https://github.com/x/y"}
    assert (await pushed(app, server, "q", repository=other)).status == 404
    await kb.sources.add("git+https://github.com/x/y@v1", name="y", version=None, settings={})
    assert (await pushed(app, server, "g", repository=other)).json["state"] == "nothing", "another branch"
    assert (await pushed(app, server, "r", ref=7)).status == 400
    clock.advance(60)
    assert await kb.webhooks.check_requested() == []


def cancelled(store: Path, at: datetime) -> None:
    """As whoever stops a run half way leaves it."""
    with closing(sqlite3.connect(store)) as beside, beside:
        content = (at - timedelta(seconds=1)).isoformat()
        beside.execute("update runs set state = 'cancelled', queued = 1, taken_at = ?, worked_at = ?, "
                       "finished_at = ? where id = (select max(id) from runs)", (content,) * 3)  # fmt: skip


async def test_F100_what_a_run_that_goes_on_may_have_looked_at_before_is_looked_at_when_it_is_over(
    app: App, kb: KnowledgeBase, server: GithubServer, clock: FrozenClock, tmp_path: Path
) -> None:
    await kb.runs.crawl("octo/docs", name="docs")
    await kb.runs.refresh(["docs"], queue=True)
    cancelled(tmp_path / "kb.db", clock())
    await pushed(app, server)
    clock.advance(2)
    assert await kb.webhooks.check_requested() == []
    (run, _) = await kb.runs.records(await kb.sources.ids("docs"))
    assert run.state == "queued", "it goes on"
    assert await kb.webhooks.check_requested() == [], "and is waited for"
    await kb.runs.cancel(run.run)
    clock.advance(2)
    assert await kb.webhooks.check_requested() == []
    assert (await kb.runs.get(run.run)).state == "cancelled", "who cancels it is not overruled"
    await pushed(app, server, "d2")
    clock.advance(2)
    assert await kb.webhooks.check_requested() == []
    await kb.runs.work(once=True)
    assert (await kb.runs.get(run.run)).state == "completed"
    (after,) = await kb.webhooks.check_requested()
    assert (after.state, after.run > run.run) == ("queued", True)
    assert await kb.webhooks.check_requested() == []


async def test_F100_R0_a_full_run_satisfies_a_push(
    app: App, kb: KnowledgeBase, server: GithubServer, clock: FrozenClock, tmp_path: Path
) -> None:
    await kb.runs.crawl("octo/docs", name="docs")
    await kb.runs.refresh(["docs"], queue=True)
    cancelled(tmp_path / "kb.db", clock())
    clock.advance(600)
    server.push({**FILES, "a.md": b"# A\n\nwordlater\n"})
    await pushed(app, server)
    clock.advance(2)
    (report,) = await kb.webhooks.check_requested()
    assert (report.run, report.state) == (2, "queued")
    await kb.runs.work(once=True)
    assert await kb.webhooks.check_requested() == [], "nothing is left to look at"
    assert await found(kb, "wordlater") == {server.page("a.md")}


async def test_F100_pages_of_a_source_with_a_cancelled_run_do_not_wait_for_ever(
    app: App, kb: KnowledgeBase, clock: FrozenClock, tmp_path: Path
) -> None:
    with TinySite() as site:
        site.put("/", "<h1>root</h1><p>Some text.</p>")
        await kb.runs.crawl(site.url, name="docs")
        await kb.runs.refresh(["docs"], queue=True)
        cancelled(tmp_path / "kb.db", clock())
        await posted(app, clock, {"urls": [site.url]})
        clock.advance(11)
        assert await kb.webhooks.check_requested() == []
        await kb.runs.work(once=True)
        assert [report.mode for report in await kb.webhooks.check_requested()] == ["check"]
        assert await kb.webhooks.check_requested() == []


async def test_F100_the_bounds_of_sites_are_made_once_and_what_files_and_links_are_read_for_is_no_page(
    app: App, kb: KnowledgeBase, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    links, url = "https://docs.example.org/", "https://docs.example.org/listed"
    await kb.sources.add(links, name="docs", version=None, settings={"include": ["/guide/*"]})
    source = await kb._context.store.sources.add(
        name="kb/links", version=None, kind="links", url=links, rules={}, policy={}, now=clock()
    )
    await kb._context.store.pages.add(source.id, url, 1, clock())
    made: list[str] = []
    bounds = kb._context.tools.bounds

    def counted(each: Source) -> tuple[Rules, Policy]:
        made.append(each.name)
        return bounds(each)

    monkeypatch.setattr(kb._context.tools, "bounds", counted)
    urls = [url, *(f"{links}guide/{number}" for number in range(20))]
    received = await kb.webhooks.receive_urls("any", "m1", urls, lambda label: True)
    assert (received.sources, received.pages, received.unknown) == (("docs",), 20, 1)
    assert made == ["docs"]
    with pytest.raises(UsageError, match="init-kb"):
        await kb.runs.start(source, RunMode.REFRESH)
    with pytest.raises(UsageError, match="init-kb"):
        await kb.runs.refresh(["kb/links"], queue=True)
    assert [report.source for report in await kb.runs.refresh(queue=True)] == ["docs"]


async def posted(app: App, clock: FrozenClock, content: object, message: str = "m1", **more: str) -> Answered:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    at = int(clock().timestamp())
    headers = {
        "content-type": "application/json",
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": sign("cms-secret", message, at, body),
    } | {name.replace("_", "-"): text for name, text in more.items()}
    return await ask(app, "POST", "/api/v1/webhooks/cms", headers, body=body, client=REMOTE)


async def test_F100_A28_a_list_of_addresses_is_looked_at_and_nothing_else(
    app: App, kb: KnowledgeBase, clock: FrozenClock, tmp_path: Path
) -> None:
    with TinySite() as site:
        page = "<h1>{0}</h1><p>Some text about word{0} and other things.</p>"
        site.put("/", page.format("root") + '<a href="/a">a</a> <a href="/b">b</a>')
        site.put("/a", page.format("a"))
        site.put("/b", page.format("b"))
        await kb.runs.crawl(site.url, name="docs")
        await kb.runs.crawl(f"{site.url}b", name="other")
        site.put("/a", page.format("changed"))
        site.put("/b", page.format("unasked"))
        site.put("/new", page.format("new"))
        urls = [f"{site.url}a", f"{site.url}new", "https://elsewhere.example/", "file:///etc/passwd", "::", "\ud800"]
        site.requests.clear()
        answered = await posted(app, clock, {"urls": urls})
        assert (answered.status, answered.json) == (
            202, {"state": "taken", "sources": ["docs"], "pages": 2, "unknown": 4},
        )  # fmt: skip
        for number in range(50):
            await posted(app, clock, {"urls": urls[:1]}, f"again-{number}")
        clock.advance(11)
        (report,) = await kb.webhooks.check_requested()
        assert counts(report) == {"new": 1, "changed": 1}
        assert sorted({*site.requests.paths()} - {"/robots.txt"}) == ["/a", "/new"]
        assert await found(kb, "wordchanged") == {f"{site.url}a"}
        assert await kb.webhooks.check_requested() == []
        assert rows(tmp_path / "kb.db", "select count(*) from webhook_deliveries") == [(51,)]


async def test_F100_a_source_that_cannot_be_looked_at_does_not_keep_others_waiting(
    app: App, kb: KnowledgeBase, clock: FrozenClock, tmp_path: Path
) -> None:
    with TinySite() as site:
        site.put("/", "<h1>root</h1><p>Some text.</p>")
        for version in ("1", "2"):
            await kb.runs.crawl(site.url, name="docs", version=version)
        with closing(sqlite3.connect(tmp_path / "kb.db")) as beside, beside:  # as a later afresh leaves it
            beside.execute("update sources set rules = '{\"bogus\": 1}' where version = '1'")
        assert (await posted(app, clock, {"urls": [site.url]})).json["sources"] == ["docs@1", "docs@2"]
        clock.advance(11)
        assert [report.version for report in await kb.webhooks.check_requested()] == ["2"]
        assert rows(tmp_path / "kb.db", "select count(*) from webhook_wishes") == [(1,)]

        put_off: PutOff = {}
        pauses = list[float]()
        for _ in range(8):
            await kb.webhooks.check_requested(put_off=put_off)
            [(until, _)] = put_off.values()
            pauses.append((until - clock()).total_seconds())
            clock.set(until - timedelta(seconds=1))
            await kb.webhooks.check_requested(put_off=put_off)
            assert [each for each, _ in put_off.values()] == [until], "it is not tried before"
            clock.set(until)
        assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


async def test_F100_a_server_that_only_reads_takes_no_messages(
    kb: KnowledgeBase, clock: FrozenClock, tmp_path: Path
) -> None:
    config = settings(tmp_path / "kb.db", {"webhooks.cms.secret": "cms-secret"})
    app = make_app(kb, config, read_only=True)
    answered = await posted(app, clock, {"urls": ["https://docs.example.org/"]}, host="127.0.0.1")
    assert (answered.status, "token" in answered.json["detail"]) == (401, True), "nothing here receives webhooks"


async def test_S8_F127_nothing_of_a_body_is_taken_before_name_and_headers_are_right(
    app: App, clock: FrozenClock
) -> None:
    good = {"content-type": "application/json", "host": "docs.internal"}
    now = str(int(clock().timestamp()))
    signed_so = {**good, "webhook-id": "m1", "webhook-timestamp": now, "webhook-signature": "v1,AAAA"}
    old = {**signed_so, "webhook-timestamp": str(int(now) - 301)}
    github = {**good, "x-hub-signature-256": "sha256=" + "0" * 64}
    asked = {
        ("nosuch", 404): signed_so,
        ("out", 404): signed_so,
        ("cms", 401): {**good, "webhook-id": "m1", "webhook-timestamp": now},
        ("cms ", 404): signed_so,
        ("github", 401): {**good, "x-hub-signature-256": "sha256=short"},
        ("github", 400): {**github, "content-type": "text/plain"},
    }
    for (name, status), headers in [*asked.items(), (("cms", 401), old)]:
        answered, taken = await dripped(app, name, headers)
        assert (name, answered, taken) == (name, status, 0)
    assert await dripped(app, "cms", signed_so) == (401, 100)
    assert await dripped(app, "github", github) == (401, 100)


async def dripped(app: App, name: str, headers: dict[str, str]) -> tuple[int, int]:
    """The answer to a message of a hundred pieces, and how many of them were taken."""
    taken, sent = [], list[Any]()

    async def receive() -> Any:
        taken.append(1)
        return {"type": "http.request", "body": b"x", "more_body": len(taken) < 100}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/api/v1/webhooks/{name}",
        "headers": [(key.encode(), text.encode()) for key, text in headers.items()],
        "client": REMOTE,
    }
    await app(scope, receive, send)
    return sent[0]["status"], len(taken)


async def test_F100_what_is_refused(
    app: App, kb: KnowledgeBase, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = {"urls": ["https://docs.example.org/"]}
    with monkeypatch.context() as patch:
        for error, status in ((StoreDamaged("torn"), 503), (ConfigError("odd"), 422)):
            patch.setattr(kb.webhooks, "receive_urls", AsyncMock(side_effect=error))
            assert (await posted(app, clock, urls)).status == status
    assert (await posted(app, clock, urls)).status == 404  # of no source
    assert (await posted(app, clock, urls, webhook_signature="v1,AAAA")).status == 401
    assert (await posted(app, clock, urls, webhook_timestamp=str(int(clock().timestamp()) - 301))).status == 401
    assert (await posted(app, clock, urls, content_type="text/plain")).status == 400
    assert (await posted(app, clock, b"[" * 100_000)).status == 400
    assert (await posted(app, clock, b"x" * 2_000_000)).status == 413
    assert (await posted(app, clock, urls, "an id with blanks")).status == 400
    assert (await posted(app, clock, urls, host="evil.example")).status == 421
    for path in ("cms", "github"):
        assert (await ask(app, "POST", f"/api/v1/webhooks/{path}", body=b"{}")).status == 401
    for path in ("out", "nosuch", "../sources", ""):
        assert (await ask(app, "POST", f"/api/v1/webhooks/{path}", body=b"{}")).status == 404, path
