"""Authentication in front of a small application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from tests.server.asking import REMOTE, ask
from tests.server.closed import Tokens, prove_closed
from tests.stores import new_store

from afresh.access.permissions import TokenScope as Reach
from afresh.config.server import AccessSettings
from afresh.server.asgi import RequestRefused, refuse
from afresh.server.auth import AuthMiddleware, allowed_of
from afresh.server.request_checks import RateLimiter, caller
from afresh.server.uvicorn_server import PeerConnections, server_limits
from afresh.services.tokens import TokenService
from afresh.store.store import Store
from afresh.testing import FrozenClock

DOCUMENT: dict[str, Any] = {
    "paths": {
        "/health": {"get": {}},
        "/api/v1/sources": {"get": {}, "post": {}},
        "/api/v1/sources/{id}": {"get": {}, "put": {}, "patch": {}, "delete": {}},
        "/api/v1/search": {"get": {}},
    }
}
MORE = [("POST", "/mcp"), ("GET", "/"), ("GET", "/docs"), ("GET", "/metrics"), ("OPTIONS", "/api/v1/sources")]


LABELS = ["react", "react@18", "vue@3", "vue", "react/site@18", "reactive", "vue/x@3", "vue/x"]


class StoreTokens(TokenService):
    """The tokens of a store, at a frozen time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clock = self.clock = FrozenClock()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Return what came through; `/api/v1/all` does not check the permissions."""
    if scope["path"] == "/api/v1/all":
        await JSONResponse({"secret": "of every source"}, 200)(scope, receive, send)
        return
    allowed = allowed_of(scope)
    body = (await receive())["body"] if scope["method"] != "GET" else b""
    labels = ["react", "react@18", "vue@3", "vue", "react/site@18", "reactive", "vue/x@3", "vue/x"]
    seen = [label for label in labels if allowed.sees(label)]
    await JSONResponse({"who": allowed.caller, "size": len(body), "seen": seen}, 200)(scope, receive, send)


async def no_page(scope: Scope, receive: Receive, send: Send, refused: RequestRefused) -> None:
    await refuse(send, refused)


@pytest.fixture
async def tokens(tmp_path: Path) -> AsyncIterator[StoreTokens]:
    async with new_store(tmp_path, Store) as store:
        yield StoreTokens(store)


async def made(tokens: StoreTokens, scope: Reach = Reach.READ, *sources: str, days: int | None = None) -> str:
    for label in sources:
        name, _, version = label.partition("@")
        await tokens._store.sources.add(
            name=name, version=version or None, kind="web", url=f"https://{name}.example/{version}",
            rules={}, policy={}, now=tokens.clock(),
        )  # fmt: skip
    expires = timedelta(days=days) if days else None
    return (await tokens.create(scope, sources=sources, expires=expires)).token


def protected_app(tokens: StoreTokens, **settings: object) -> AuthMiddleware:
    return AuthMiddleware(echo, tokens, AccessSettings(**settings))  # type: ignore[arg-type]


async def test_F102_F103_every_route_is_closed_but_health(tokens: StoreTokens) -> None:
    read, revoked, expired = await made(tokens), await made(tokens), await made(tokens, days=1)
    await tokens.revoke(2)
    tokens.clock.advance(days=2)
    given = Tokens(read=read, dead=(revoked, expired, "afresh_" + "x" * 43, read[:-1], read.upper(), "\xff"))
    app = protected_app(tokens, burst=100_000)
    assert await prove_closed(app, DOCUMENT, given, MORE) == 13
    assert (await ask(app, "GET", "/health", client=REMOTE)).status == 200
    assert (await ask(app, "GET", "/api/v1/search", token=read, client=REMOTE)).status == 200
    assert (await ask(app, "POST", "/mcp", token=read)).status == 200  # its tools ask what is allowed
    missing = await ask(app, "GET", "/health/../api/v1/search")
    assert (missing.status, b"`afresh token create`" in missing.body) == (401, True)


async def test_F102_without_tokens_only_this_machine_is_answered(tokens: StoreTokens) -> None:
    app = protected_app(tokens, hosts=("docs.internal",))
    assert (await ask(app, "POST", "/x", body=b"ab")).json == {
        "who": "loopback", "size": 2, "seen": LABELS,
    }  # fmt: skip
    for host in ("localhost:8000", "[::1]:8000", "127.1.2.3", "LOCALHOST."):
        assert (await ask(app, "GET", "/x", {"host": host}, client=("::1", 1))).status == 200, host
    assert (await ask(app, "GET", "/x", client=REMOTE)).status == 401
    assert (await ask(app, "GET", "/x", client=None)).status == 401
    by_address = await ask(app, "GET", "/x", {"host": "203.0.113.1"})
    assert (by_address.status, "afresh token create" in by_address.json["detail"]) == (421, True)
    # a proxy on this machine passes on what comes from elsewhere
    for name in ("x-forwarded-for", "forwarded", "x-real-ip", "via"):
        assert (await ask(app, "GET", "/x", {"host": "docs.internal", name: "203.0.113.9"})).status == 401

    token = await made(tokens, Reach.WRITE)  # from the first token on this machine needs one as well
    assert (await ask(app, "GET", "/x")).status == 401
    assert (await ask(app, "GET", "/x", {"host": "203.0.113.1"}, token=token, client=REMOTE)).status == 200
    assert (await ask(protected_app(tokens, loopback_open=True), "GET", "/x")).status == 200
    assert (await ask(protected_app(tokens, loopback_open=True), "GET", "/x", token="wrong")).status == 401
    await tokens.revoke(1)
    assert (await ask(app, "GET", "/x", token=token)).status == 401
    assert (await ask(app, "GET", "/x")).status == 401, "the last token's end opens nothing"


async def test_F102_a_bound_token_sees_its_sources_and_nothing_that_forgets_to_ask(tokens: StoreTokens) -> None:
    bound = await made(tokens, Reach.WRITE, "react", "vue@3")
    app = protected_app(tokens)
    assert (await ask(app, "GET", "/x", token=bound)).json["seen"] == [
        *("react", "react@18", "vue@3", "react/site@18", "vue/x@3")
    ]
    refused = await ask(app, "GET", "/api/v1/all", token=bound)
    assert refused.status == 403
    assert b"of every source" not in refused.body
    assert (await ask(app, "GET", "/api/v1/all", token=await made(tokens))).status == 200


async def test_F103_a_page_of_ours_or_a_listed_site_may_ask_and_a_person_may_follow_a_link(tokens: StoreTokens) -> None:
    app = protected_app(tokens, origins=("https://docs.example.org",))
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for headers in (
        {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"},
        {"origin": "https://docs.example.org", "sec-fetch-site": "cross-site"},
        link,
    ):
        answered = await ask(app, "GET", "/x", headers)
        assert answered.status == 200, headers
        assert not [name for name in answered.headers if name.startswith("access-control-")]
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answered.headers["content-security-policy"]
    assert (await ask(app, "POST", "/x", link)).status == 403
    assert (await ask(app, "GET", "/x", {**link, "sec-fetch-dest": "iframe"})).status == 403


async def test_F102_bodies_have_a_size_and_a_time(tokens: StoreTokens) -> None:
    app = protected_app(tokens, max_body_bytes=1_024)
    assert (await ask(app, "POST", "/x", body=b"x" * 1_024)).json["size"] == 1_024
    assert (await ask(app, "POST", "/x", body=b"x" * 1_025)).status == 413
    assert (await ask(app, "POST", "/x", body=[b"x" * 600, b"x" * 600])).status == 413  # no length told
    assert (await ask(app, "POST", "/x", {"content-length": "9" * 30}, body=[b"x"])).status == 413

    async def never() -> dict[str, object]:
        await asyncio.Event().wait()
        raise AssertionError

    late = AuthMiddleware(echo, tokens, AccessSettings(body_seconds=0.1))
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        sent.append(message)  # type: ignore[arg-type]

    scope = {
        "type": "http", "method": "POST", "path": "/x",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1),
    }  # fmt: skip
    await late(scope, never, send)
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    ("media", "body", "status"),
    [
        ("application/json", b"[" + b"[]," * 20_000 + b"1]", 413),
        ("application/problem+json", b"{" + b'"a":1,' * 20_000 + b'"b":1}', 413),
        ("", b"[" + b"1," * 20_000 + b"1]", 413),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 101), 413),
        ("application/x-www-form-urlencoded", b"a=" + b"x" * 65_536, 413),
        ("application/x-www-form-urlencoded; charset=utf-8", b"a=" + b"," * 65_000 + b"&b=1", 200),
        ("application/json", b"[" + b"1," * 19_000 + b"1]", 200),
    ],
)
async def test_S2_S7_F120_a_body_of_many_values_or_endless_fields_is_refused_unread(
    tokens: StoreTokens, media: str, body: bytes, status: int
) -> None:
    """A body of a megabyte may hold 300,000 lists, and one field may be all of it."""
    assert (await ask(protected_app(tokens), "POST", "/x", {"content-type": media}, body=body)).status == status


async def test_F102_a_caller_over_the_limit_gets_a_retry_time(tokens: StoreTokens) -> None:
    token, other = await made(tokens), await made(tokens)
    app = protected_app(tokens, burst=5, requests_per_second=0.01)
    statuses = [(await ask(app, "GET", "/x", token=token)).status for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    assert int((await ask(app, "GET", "/x", token=token)).headers["retry-after"]) > 1
    assert (await ask(app, "GET", "/x", token=other)).status == 200
    guesses = [(await ask(app, "GET", "/x", token="afresh_no", client=REMOTE)).status for _ in range(7)]
    assert guesses == [401] * 5 + [429] * 2
    behind = await ask(app, "GET", "/x", token=await made(tokens), client=REMOTE)
    assert behind.status == 200, "all who come through one proxy are one peer"

    async def hooks(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({}, 202)(scope, receive, send)

    receives = AuthMiddleware(echo, tokens, AccessSettings(burst=5, requests_per_second=0.01), hooks=hooks)
    received = [(await ask(receives, "POST", "/api/v1/webhooks/x", client=REMOTE)).status for _ in range(6)]
    assert received == [202] * 5 + [429]
    assert (await ask(receives, "GET", "/health", client=REMOTE)).status == 200, "whatever else that peer sends"

    time = [0.0]
    buckets = RateLimiter(2.0, 1, lambda: time[0])
    assert (buckets.take("a"), buckets.take("a"), buckets.take("b")) == (0.0, 0.5, 0.0)
    time[0] = 0.5
    assert buckets.take("a") == 0.0
    assert caller("2001:db8::1") == caller("2001:db8::ffff") != caller("2001:db8:0:1::1")


async def test_S8_F189_a_flood_of_logins_leaves_health_to_its_peer(tokens: StoreTokens) -> None:
    opens = AuthMiddleware(echo, tokens, AccessSettings(burst=5, requests_per_second=0.01), page=no_page)
    logins = [(await ask(opens, "POST", "/login", client=REMOTE)).status for _ in range(6)]
    assert logins[-1] == 429
    assert (await ask(opens, "GET", "/assets/x.css", client=REMOTE)).status == 429
    health = [(await ask(opens, "GET", "/health", client=REMOTE)).status for _ in range(6)]
    assert health == [200] * 5 + [429], "a bucket of its own, which is bounded too"


async def test_F103_there_are_no_websockets(tokens: StoreTokens) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        sent.append(message)  # type: ignore[arg-type]

    await protected_app(tokens)({"type": "websocket", "headers": []}, send, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


@asynccontextmanager
async def served(app: AuthMiddleware, settings: AccessSettings) -> AsyncIterator[int]:
    """A real server on loopback."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off", **server_limits(settings))
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve(None))
    while not server.started:  # noqa: ASYNC110 - another task of ours
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await task


async def test_F102_a_head_that_never_comes_ends_the_connection(tokens: StoreTokens) -> None:
    settings = AccessSettings(header_seconds=0.2)
    async with served(protected_app(tokens), settings) as port:
        for before in (b"", b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(before)
            if before:
                assert b"200" in await reader.readline()
                await reader.readuntil(b"}")
            writer.write(b"GET /health HTTP/1.1\r\nx-slow: ")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()


ASKS_FOR_HEALTH = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


async def test_S8_F128_half_open_connections_of_one_peer_keep_nobody_out(tokens: StoreTokens) -> None:
    settings = AccessSettings(connections_per_peer=5, max_connections=8, header_seconds=3_600)
    async with served(protected_app(tokens), settings) as port, asyncio.timeout(30):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for reader, _ in silent[:15]:
            with suppress(ConnectionResetError):  # the oldest go first
                assert await reader.read() == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/v1/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert b" 200 " in await reader.readline()
        for each in (writer, *(each for _, each in silent)):
            each.close()


async def test_S8_F128_health_answers_when_all_connections_are_taken(tokens: StoreTokens) -> None:
    settings = AccessSettings(max_connections=3, header_seconds=3_600)
    async with served(protected_app(tokens), settings) as port, asyncio.timeout(30):
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for path, status in (("/health", b" 200 "), ("/api/v1/x", b" 503 ")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASKS_FOR_HEALTH.replace(b"/health", path.encode()))
            assert status in await reader.readline()
            await reader.read()
            writer.close()
        for _, each in others:
            each.close()


def test_S8_connections_are_counted_by_peer() -> None:
    peers, ended = PeerConnections(2), list[str]()

    def enter(address: str, name: str) -> bool:
        return peers.enter(address, name, lambda: ended.append(name))

    assert all([enter("2001:db8::1", "a"), enter("2001:db8::2", "b"), enter("203.0.113.9", "c")])
    peers.mark_active("a")
    assert (enter("2001:db8::3", "d"), ended) == (True, ["b"])  # of one network, silent for longest
    peers.mark_active("d")
    assert (enter("2001:db8::3", "e"), ended) == (False, ["b"])  # all are in use
    peers.leave("a")
    assert enter("2001:db8::3", "f")
    for number in range(9):  # a reverse proxy on this machine brings many callers
        assert enter("127.0.0.1", f"p{number}")
        peers.mark_active(f"p{number}")


@pytest.mark.parametrize("piece", [b"1\r\nx\r\n", b"80\r\n" + b"x" * 128 + b"\r\n"])
async def test_S8_F127_a_body_in_crumbs_is_not_taken(tokens: StoreTokens, piece: bytes) -> None:
    async with served(protected_app(tokens), AccessSettings()) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = b"POST /api/v1/x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + piece * 5_000 + b"0\r\n\r\n")
        assert (b" 400 " if len(piece) < 64 else b" 200 ") in await reader.readline()
        writer.close()


async def test_S8_F127_an_answer_before_the_end_of_a_body_ends_the_connection(
    tokens: StoreTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.server.uvicorn_server.LINGER_SECONDS", 0.05)
    async with served(protected_app(tokens), AccessSettings()) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /x HTTP/1.1\r\nhost: evil.example\r\ntransfer-encoding: chunked\r\n\r\n")
        answer = await reader.read()  # to the end, although nothing more of the body was sent
        assert b" 421 " in answer.splitlines()[0]
        writer.close()
