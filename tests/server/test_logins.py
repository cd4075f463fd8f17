"""Logins: how long a cookie is worth something, and what it is sent with."""

from datetime import timedelta
from pathlib import Path

import pytest
from starlette.types import ASGIApp as App
from tests.e2e.library import settings
from tests.server.asking import REMOTE, Answered, ask
from tests.server.served import served

from afresh.access.permissions import TokenScope
from afresh.app import build
from afresh.server.app import make_app
from afresh.server.auth import IN_ALL, PER_PEER, FailedLogins

HTML = {"accept": "text/html"}
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:8000"}


async def test_F102_a_login_is_worth_as_much_as_its_token_and_no_longer(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db", {"access.requests_per_second": 0.01, "access.burst": 20})
    kb = await build(config)
    try:
        made = await kb.tokens.create(TokenScope.WRITE, expires=timedelta(hours=1))
        app: App = make_app(kb, config, works=False)

        async def log_in(token: str, **headers: str) -> Answered:
            body = f"token={token}&to=%2Fchanges".encode()
            return await ask(app, "POST", "/login", {**FORM, **headers}, body=body, client=REMOTE)

        entered = await log_in(made.token, **{"x-forwarded-proto": "https"})
        assert (entered.status, entered.headers["location"]) == (303, "/changes")
        cookie, *terms = entered.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= set(terms)
        held = {**HTML, "cookie": cookie}
        assert (await ask(app, "GET", "/", held, client=REMOTE)).status == 200
        assert (await ask(app, "GET", "/api/v1/sources", held, client=REMOTE)).status == 200
        assert (await ask(app, "GET", "/", HTML, client=REMOTE)).headers["location"] == "/login?to=/"
        again = await ask(app, "GET", "/login?to=/changes", held, client=REMOTE)
        assert (again.status, again.headers["location"]) == (303, "/changes"), "who is logged in goes on"
        stray = {**held, "authorization": "Basic eDp5"}  # as a proxy may add it, with which nobody is let in
        assert (await ask(app, "GET", "/login", stray, client=REMOTE)).status == 200
        policy = (await ask(app, "GET", "/login", HTML, client=REMOTE)).headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")

        renewed = await build(config)  # another server on the same store, or this one after a start
        try:
            second: App = make_app(renewed, config, works=False)
            assert (await ask(second, "GET", "/", held, client=REMOTE)).status == 200
        finally:
            await renewed.close()

        await kb.tokens.revoke(made.id)
        assert (await ask(app, "GET", "/", held, client=REMOTE)).status == 303
        assert (await ask(app, "GET", "/api/v1/sources", held, client=REMOTE)).status == 401
        tried = [(await log_in("afresh_guess")).status for _ in range(25)]
        assert tried[0] == 401
        assert tried[-1] == 429  # whoever guesses waits
    finally:
        await kb.close()


async def test_F102_a_stream_of_events_ends_with_the_token_that_opened_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.server.replies.RECHECK_SECONDS", 0.0)
    monkeypatch.setattr("afresh.server.api.runs.POLL_SECONDS", 0.001)
    config = settings(tmp_path / "kb.db")
    async with served(tmp_path / "kb.db", works=False, config=config) as client:
        kb = await build(config)
        try:
            source, _ = await kb.sources.add("https://docs.example.org/", name="docs", version=None, settings={})
            run = await kb.runs.start(source)  # that waits for a worker, for ever
            made = await kb.tokens.create(TokenScope.READ)
            bearer = {"authorization": f"Bearer {made.token}"}
            async with client.session.get(f"/api/v1/runs/{run.run}/events", headers=bearer) as watched:
                assert await watched.content.readline() == b"event: progress\n"
                await kb.tokens.revoke(made.id)
                assert b"event: end" not in await watched.read()  # it is over, the run is not
        finally:
            await kb.close()


async def test_S8_F130_wrong_tokens_are_logged_without_what_was_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings(tmp_path / "kb.db")
    kb = await build(config)
    try:
        made = await kb.tokens.create(TokenScope.READ)
        app: App = make_app(kb, config, works=False)
        bearer = {"authorization": "Bearer afresh_guessed", "x-forwarded-for": "198.51.100.7"}
        for path in ("/api/v1/sources", "/mcp"):
            assert (await ask(app, "GET", path, bearer, client=REMOTE)).status == 401
        wrong = await ask(app, "POST", "/login", FORM, body=b"token=afresh_guessed", client=REMOTE)
        assert wrong.status == 401
        assert (await ask(app, "GET", "/api/v1/sources", client=REMOTE)).status == 401  # tried nothing
        assert (await ask(app, "GET", "/api/v1/sources", token=made.token, client=REMOTE)).status == 200
    finally:
        await kb.close()
    content = [record.__dict__["data"] for record in caplog.records if record.getMessage() == "login failed"]
    assert [(each["peer"], each["path"]) for each in content] == [
        (REMOTE[0], "/api/v1/sources"), (REMOTE[0], "/mcp"), (REMOTE[0], "/login"),
    ]  # fmt: skip
    assert (content[0]["forwarded_for"], content[2]["forwarded_for"]) == ("198.51.100.7", None)
    assert "unknown, expired or revoked" in content[0]["reason"]
    assert "guessed" not in caplog.text + str(content)


def test_S8_F130_guesses_without_end_are_counted_and_not_all_logged(caplog: pytest.LogCaptureFixture) -> None:
    time = [0.0]
    failures = FailedLogins(lambda: time[0])
    scope = {"method": "GET", "path": "/", "headers": [], "client": ("198.51.100.1", 1)}
    for _ in range(1_000):
        failures.record(scope)
    for number in range(1_000):
        failures.record({**scope, "client": (f"203.0.{number // 250}.{number % 250}", 1)})
    assert len(caplog.records) == PER_PEER[1] + IN_ALL[1] - PER_PEER[1]
    time[0] = 3_600.0
    failures.record(scope)
    left_out = sum(record.__dict__["data"]["left_out"] or 0 for record in caplog.records)
    assert left_out + len(caplog.records) == 2_001
