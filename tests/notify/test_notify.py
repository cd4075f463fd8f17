"""Notifications through apprise: plain text, tried again, never to private places, never by redirects."""

import importlib.util
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened
from tests.fakes.servers import Wire, answer, redirect, serving

from afresh.cli import main
from afresh.config import describe, load, secret_values
from afresh.errors import ConfigError
from afresh.notify.apprise_child import ConnectGuard
from afresh.notify.sender import plain_text
from afresh.sources.web.guard import AddressPolicy, AddressRefused
from afresh.testing import FrozenClock, TinySite

KEY = "hush-hush-key"


@pytest.fixture
async def wire(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    async with serving({}) as wire:
        yield wire


def place(wire: Wire, path: str = f"/{KEY}", **more: str) -> str:
    asked = "".join(f"&{name}={value}" for name, value in more.items())
    return f"json://{wire.url(path).removeprefix('http://')}?method=POST{asked}"


def body(wire: Wire) -> list[dict[str, Any]]:
    return [json.loads(asked.body) for asked in wire.asked]


@pytest.mark.slow
async def test_F101_people_are_notified_of_runs_and_pages_in_plain_text(wire: Wire, tmp_path: Path) -> None:
    clock = FrozenClock(datetime(2026, 5, 1, tzinfo=UTC))
    wire.routes[f"/{KEY}"] = answer(503)
    given = {"crawl.probe": False, "notify.ops.url": place(wire, redirect="yes")}
    with TinySite() as site:
        site.put("/", "<h1>Root</h1><p>Some text about harbors.</p><a href='/@everyone'>all</a>")
        site.put("/@everyone", "<h1>All</h1><p>Some text about everyone.</p>")
        async with opened(tmp_path / "kb.db", given, clock=clock) as kb:
            await kb.runs.crawl(site.url, name="docs")
            assert await kb.webhooks.send() == 0
            waiting = {message.event: message for message in await kb.webhooks.messages()}
            assert waiting["run.finished"].error == "the service answered 503"
            assert waiting["run.finished"].target == "notify.ops"

            wire.routes[f"/{KEY}"] = redirect(wire.url("/inside"), 307)
            wire.routes["/inside"] = answer(200)
            clock.advance(60)
            assert await kb.webhooks.send() == 0
            assert "/inside" not in wire.paths()  # although its address asks for redirects

            wire.asked.clear()
            wire.routes[f"/{KEY}"] = answer(200)
            clock.advance(600)
            assert await kb.webhooks.send() == 2
            finished, pages = body(wire)
            assert (finished["title"], finished["message"]) == (
                "afresh: docs completed",
                "Run 1 of docs ended: completed.\n2 checked, 2 new.",
            )
            assert pages["message"].splitlines()[1:] == [f"new {site.url}", f"new {site.url}%40everyone"]

            await kb.runs.refresh(["docs"])
        private = {**given, "network.allow": []}
        wire.asked.clear()
        async with opened(tmp_path / "kb.db", private, clock=clock) as kb:
            assert await kb.webhooks.send() == 0
            (dead,) = await kb.webhooks.messages(state=None, limit=1)
            assert (dead.state, wire.asked) == ("dead", [])
            assert "network.allow" in str(dead.error)
            assert KEY not in str(dead.error)


async def test_F101_what_apprise_connects_to_is_checked_when_it_does() -> None:
    wall = ConnectGuard(AddressPolicy(["docs.internal:25"]))
    wall("socket.getaddrinfo", ("docs.internal", 25, 0, 0, 0))
    wall("socket.connect", (None, ("10.0.0.7", 25)))
    wall("socket.connect", (None, ("93.184.215.14", 443)))
    assert wall.refused is None
    for event, args in (
        ("socket.connect", (None, ("10.0.0.7", 26))),
        ("socket.connect", (None, ("::ffff:169.254.169.254", 80, 0, 0))),
        ("socket.sendto", (None, ("127.0.0.1", 514))),
        ("socket.connect", (None, "/run/dbus/system_bus_socket")),
        ("subprocess.Popen", ("sh", ["sh"], None, None)),
    ):
        wall.refused = None
        with pytest.raises(AddressRefused):
            wall(event, args)
        assert wall.refused


def test_F111_an_address_of_apprise_is_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "afresh.yaml"
    file.write_text("notify: {ops: {events: [run.braked]}}\n")
    config = load(file, {"AFRESH_NOTIFY__OPS__URL": f"slack://{KEY}/b/c"}, {}, tmp_path)
    assert describe(config)["notify"]["ops"] == {"url": "***", "events": ["run.braked"], "sources": []}
    assert KEY not in repr(config)
    assert f"slack://{KEY}/b/c" in secret_values(config)
    file.write_text(f"notify: {{ops: {{url: 'slack:{KEY}'}}, none: {{events: [run.braked]}}}}\n")
    assert main(["config", "show", "--config", str(file)]) == 2
    output_text = capsys.readouterr().err
    assert "slack://…" in output_text
    assert KEY not in output_text


def test_what_sends_is_named_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("afresh.services.webhooks.find_spec", lambda name: None)
    monkeypatch.setenv("AFRESH_NOTIFY__OPS__URL", f"slack://{KEY}")
    assert main(["serve", "--port", "0", "--store", f"sqlite:///{tmp_path / 'kb.db'}"]) == 2
    assert "afresh[notify]" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"notify\.ops\.url is missing"):
        load(None, {"AFRESH_NOTIFY__OPS__EVENTS": "run.braked"}, {}, tmp_path)


def test_F111_texts_of_others_are_no_commands_to_a_service() -> None:
    counts = dict.fromkeys(("checked", "new", "changed", "deleted", "moved", "missing", "failed", "refused"), 1)
    run = {"source": "docs", "version": "2", "run": 7, "state": "failed", "counts": {**counts, "held": 3}}
    error = "no <!channel>, @everyone: https://me:hush@x.example/?token=hush\n{{ 7*7 }}"
    _, text = plain_text({"event": "run.finished", "error": error, **run})
    assert len(text.splitlines()) == 3
    assert not {"<", ">", "*"} & set(text.replace("***", ""))
    assert "@everyone" not in text
    assert "hush" not in text
    title, text = plain_text({"event": "run.braked", "error": None, **run})
    assert (title, text[-16:]) == ("afresh: docs@2 needs confirmation", "afresh confirm 7")
    page = {"event": "page.moved", "url": "https://x.example/a", "moved_to": "https://x.example/b"}
    _, text = plain_text({"event": "pages", "pages": [page] * 30, "more": False, "error": None, **run})
    assert text.splitlines()[1] == "moved https://x.example/a -> https://x.example/b"
    assert text.splitlines()[-1] == "and 10 more"
